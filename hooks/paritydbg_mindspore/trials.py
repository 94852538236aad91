"""Runs one MindSpore layer or optimizer on given tensors, in PyNative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from numpy.typing import NDArray

from paritydbg.errors import UsageError
from paritydbg.model.trial import Call, Trial, TrialResult
from paritydbg.session.slots import arguments_of
from paritydbg.weights.lone_layer import LoneLayer
from paritydbg_mindspore import structure, weights
from paritydbg_mindspore.values import NESTING, values_of

Array = NDArray[Any]


def run_trial(trial: Trial) -> TrialResult:
    """What the layer or optimizer gives; what MindSpore raises is passed on."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    blocking = getattr(getattr(ms, "runtime", None), "launch_blocking", None)
    if blocking is not None:
        # A kernel's failure must come up in the trial that it belongs to.
        blocking()
    if trial.call.of_parameters:
        return _run_optimizer(trial)
    built = api_of(trial.call)(*trial.call.arguments, **dict(trial.call.keywords))
    if not isinstance(built, nn.Cell):
        raise UsageError(f"{trial.call.api} makes no cell")
    return _run_layer(trial, built)


def api_of(call: Call) -> Callable[..., Any]:
    """The class that a call names; only MindSpore's own are looked up.

    Raises:
        UsageError: it names something else.
    """
    module, _, name = call.api.rpartition(".")
    if module.partition(".")[0] != "mindspore":
        raise UsageError(f"{call.api} is no API of MindSpore")
    found: Any = getattr(import_module(module), name, None)
    if not callable(found):
        raise UsageError(f"{call.api} is not in MindSpore {ms.__version__}")
    return found  # type: ignore[no-any-return]


def _run_layer(trial: Trial, cell: nn.Cell) -> TrialResult:
    cell.set_train(trial.training)
    net = {"": cell}
    layer = LoneLayer(
        trial,
        structure.layer_records(net),
        structure.parameter_records(net),
        weights.read_parameters(cell),
    )
    weights.write_parameters(cell, layer.fitted(trial.values))
    tensors = {slot: Tensor(np.array(array, order="C")) for slot, array in trial.inputs.items()}
    floats = [slot for slot, one in tensors.items() if "Float" in str(one.dtype)]
    trained = {name: p for name, p, _ in structure.named_parameters(net) if _trains(p)}

    slots: list[str] = []

    def outputs(*given: Tensor) -> list[Tensor]:
        positional, named = arguments_of({**tensors, **dict(zip(floats, given, strict=True))})
        found = dict(NESTING.found(cell(*positional, **named)))
        slots[:] = found
        return list(found.values())

    if not trial.grad_outputs:
        told = outputs(*(tensors[slot] for slot in floats))
        return _result(dict(zip(slots, told, strict=True)), {}, {}, layer, cell)

    def weighted(*given: Tensor) -> Any:
        told = outputs(*given)
        # The gradient of a sum weighted by g is what g brings back.
        total = sum(
            (one * Tensor(np.array(trial.grad_outputs[slot]), one.dtype)).sum()
            for slot, one in zip(slots, told, strict=True)
            if slot in trial.grad_outputs
        )
        return total, *told

    positions = tuple(range(len(floats)))
    gradient_of = ops.value_and_grad(
        weighted, positions or None, list(trained.values()) or None, has_aux=True
    )
    (_, *told), gradients = gradient_of(*(tensors[slot] for slot in floats))
    if positions and trained:
        of_inputs, of_weights = gradients
    else:
        of_inputs, of_weights = (gradients, ()) if positions else ((), gradients)
    of_inputs = of_inputs if isinstance(of_inputs, (tuple, list)) else (of_inputs,)
    of_weights = of_weights if isinstance(of_weights, (tuple, list)) else (of_weights,)
    return _result(
        dict(zip(slots, told, strict=True)),
        dict(zip(floats, of_inputs, strict=True)),
        dict(zip(trained, of_weights, strict=True)),
        layer,
        cell,
    )


def _result(
    outputs: Mapping[str, Tensor],
    grad_inputs: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    layer: LoneLayer,
    cell: nn.Cell,
) -> TrialResult:
    return TrialResult(
        {slot: _array(one) for slot, one in outputs.items()},
        {slot: _array(one) for slot, one in grad_inputs.items()},
        layer.back({name: _array(one) for name, one in gradients.items()}),
        layer.back(weights.read_parameters(cell)),
    )


def _run_optimizer(trial: Trial) -> TrialResult:
    """The parameters after one step of a fresh optimizer."""
    parameters = {
        name: Parameter(Tensor(np.array(array, order="C")), name=name)
        for name, array in trial.values.items()
    }
    made = api_of(trial.call)(
        list(parameters.values()), *trial.call.arguments, **dict(trial.call.keywords)
    )
    made(tuple(Tensor(np.array(trial.gradients[name], order="C")) for name in parameters))
    return TrialResult(values={name: _array(one) for name, one in parameters.items()})


def _trains(tensor: Any) -> bool:
    return isinstance(tensor, Parameter) and tensor.requires_grad


def _array(tensor: Tensor) -> Array:
    values = values_of(tensor)
    if values is None:
        raise UsageError("a result cannot be read")
    return values.decoded()
