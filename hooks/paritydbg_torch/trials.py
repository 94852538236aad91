"""Runs one torch layer or optimizer on given tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from paritydbg.errors import UsageError
from paritydbg.model.trial import Call, Trial, TrialResult
from paritydbg.session.slots import arguments_of
from paritydbg.weights.lone_layer import LoneLayer
from paritydbg_torch import structure, weights
from paritydbg_torch.values import NESTING, values_of

Array = NDArray[Any]


def run_trial(trial: Trial) -> TrialResult:
    """What the layer or optimizer gives; what torch raises is passed on."""
    if trial.call.of_parameters:
        return _run_optimizer(trial)
    built = api_of(trial.call)(*trial.call.arguments, **dict(trial.call.keywords))
    if not isinstance(built, nn.Module):
        raise UsageError(f"{trial.call.api} makes no module")
    return _run_layer(trial, built)


def api_of(call: Call) -> Callable[..., Any]:
    """The class that a call names; only torch's own are looked up.

    Raises:
        UsageError: it names something else.
    """
    module, _, name = call.api.rpartition(".")
    if module.partition(".")[0] != "torch":
        raise UsageError(f"{call.api} is no API of torch")
    found: Any = getattr(import_module(module), name, None)
    if not callable(found):
        raise UsageError(f"{call.api} is not in torch {torch.__version__}")
    return found  # type: ignore[no-any-return]


def _run_layer(trial: Trial, module: nn.Module) -> TrialResult:
    module.train(trial.training)
    net = {"": module}
    layer = LoneLayer(
        trial,
        structure.layer_records(net),
        structure.parameter_records(net),
        weights.read_parameters(module),
    )
    weights.write_parameters(module, layer.fitted(trial.values))
    tensors = {slot: torch.tensor(array) for slot, array in trial.inputs.items()}
    floats = [slot for slot, one in tensors.items() if one.is_floating_point()]
    for slot in floats:
        tensors[slot].requires_grad_(bool(trial.grad_outputs))
    positional, named = arguments_of(tensors)
    outputs = dict(NESTING.found(module(*positional, **named)))
    pairs = [
        (outputs[slot], torch.tensor(gradient).to(outputs[slot].dtype))
        for slot, gradient in trial.grad_outputs.items()
        if slot in outputs and outputs[slot].requires_grad
    ]
    if pairs:
        torch.autograd.backward([one for one, _ in pairs], [g for _, g in pairs])
    trained = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    return TrialResult(
        _arrays(outputs),
        _arrays({slot: tensors[slot].grad for slot in floats}),
        layer.back(_arrays(trained)),
        layer.back(weights.read_parameters(module)),
    )


def _run_optimizer(trial: Trial) -> TrialResult:
    """The parameters after one step of a fresh optimizer."""
    parameters = {name: nn.Parameter(torch.tensor(array)) for name, array in trial.values.items()}
    made = api_of(trial.call)(
        list(parameters.values()), *trial.call.arguments, **dict(trial.call.keywords)
    )
    for name, parameter in parameters.items():
        parameter.grad = torch.tensor(trial.gradients[name])
    made.step()
    return TrialResult(values=_arrays(parameters))


def _arrays(tensors: Mapping[str, torch.Tensor | None]) -> dict[str, Array]:
    return {name: _array(one) for name, one in tensors.items() if one is not None}


def _array(tensor: torch.Tensor) -> Array:
    values = values_of(tensor)
    if values is None:
        raise UsageError("a result cannot be read")
    return values.decoded()
