"""Builds the two sides of a case, as often as it is run: nets with the same start, fresh optimizers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from casebench.cases import ROOT, Case, load_file
from casebench.precision import lowered


@dataclass(frozen=True)
class Side:
    """One framework's half of a case, in functions.

    Attributes:
        make: the net, weights in place, and its optimizer or None; anew each time.
        batch: of a step (from 0), as tensors of the framework.
        step: runs one step (net, optimizer, batch, step from 0).
        state: what is left after the last step, as arrays.
        steps: how many there are.
    """

    make: Callable[[], tuple[Any, Any]]
    batch: Callable[[int], dict[str, Any]]
    step: Callable[[Any, Any, dict[str, Any], int], None]
    state: Callable[[Any, Any], dict[str, Any]]
    steps: int


@dataclass(frozen=True)
class Sides:
    """Both halves, the reference's first.

    Attributes:
        losses: filled with a step's losses as it runs.
        expected: the answer that is expected of a faulty port.
    """

    reference: Side
    port: Side
    losses: list[Any]
    expected: dict[str, Any]


def sides_of(case: Case, faulty: bool) -> Sides:
    """The two sides of a case; for a case file the environment tells whether it is faulty."""
    import torch

    torch.set_num_threads(1)
    if case.file.is_dir():
        return _sample_sides(case, faulty)
    return _file_sides(load_file(case.file))


def _file_sides(case: Any) -> Sides:
    inputs = case.inputs()
    inputs_ms = case.inputs_ms() if hasattr(case, "inputs_ms") else case.inputs()
    steps = getattr(case, "STEPS", 1)
    losses: list[Any] = []
    for name in ("loss_torch", "loss_ms"):
        _listen(case, name, losses)
    first = case.torch_net()
    values = {name: value.detach().clone() for name, value in first.state_dict().items()}

    def torch_net() -> Any:
        net = case.torch_net()
        net.load_state_dict(values)
        return net

    def reference() -> tuple[Any, Any]:
        net = torch_net()
        _set_modes(case, net, None)
        return net, case.opt_torch(net) if hasattr(case, "opt_torch") else None

    def port() -> tuple[Any, Any]:
        net = case.mindspore_net()
        source = torch_net()
        case.transplant(source, net)
        _set_modes(case, source, net)
        return net, case.opt_ms(net) if hasattr(case, "opt_ms") else None

    return Sides(
        Side(
            reference,
            lambda step: {name: _torch_tensor(array) for name, array in inputs.items()},
            getattr(case, "step_torch", None) or _torch_step(case),
            getattr(case, "state_torch", _no_state),
            steps,
        ),
        Side(
            port,
            lambda step: {name: _mindspore_tensor(array) for name, array in inputs_ms.items()},
            getattr(case, "step_ms", None) or _mindspore_step(case),
            getattr(case, "state_ms", _no_state),
            steps,
        ),
        losses,
        dict(case.EXPECTED),
    )


def _sample_sides(case: Case, faulty: bool) -> Sides:
    """A sample pair: the port starts from the reference's weights through the product's transplant."""
    import mindspore as ms
    import torch

    import paritydbg

    sys.path.insert(0, str(ROOT))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    package = f"sample_nets.{case.file.name}"
    reference, port, data = (
        import_module(f"{package}.{name}") for name in ("torch_net", "mindspore_net", "data")
    )
    switched = case.fault if faulty else None
    low = lowered(case.precision)
    losses: list[Any] = []

    def torch_net() -> Any:
        torch.manual_seed(case.seed)
        return reference.make_net()

    def torch_side() -> tuple[Any, Any]:
        net = low.torch_net(torch_net().train())
        return net, reference.make_optimizer(net)

    def mindspore_side() -> tuple[Any, Any]:
        ms.set_seed(case.seed)
        net = port.make_net(switched)
        values = {name: t.detach().cpu().numpy() for name, t in torch_net().state_dict().items()}
        wrong = getattr(port, "wrong_weights", None)
        paritydbg.transplant(values if wrong is None else wrong(values, switched), net)
        net = low.mindspore_net(net.set_train(True))
        return net, port.make_optimizer(net, switched)

    def torch_step(net: Any, optimizer: Any, batch: dict[str, Any], step: int) -> None:
        optimizer.zero_grad()
        with low.torch_region():
            loss = reference.loss(net, batch)
        losses.append(loss)
        loss.backward()
        optimizer.step()

    def mindspore_step(net: Any, optimizer: Any, batch: dict[str, Any], step: int) -> None:
        def forward() -> Any:
            return port.loss(net, batch, switched)

        weights = optimizer.parameters
        loss, gradients = ms.value_and_grad(forward, None, weights)()
        losses.append(loss)
        optimizer(gradients)

    # Other seeds see other batches: those of later steps.
    after = 1 + 1000 * case.seed
    (entry,) = (f for f in load_file(case.file / "faults.py").FAULTS if f.name == case.fault)
    return Sides(
        Side(
            torch_side,
            lambda step: low.inputs(_tensors(data.batch(step + after), _torch_tensor)),
            torch_step,
            _no_state,
            2,
        ),
        Side(
            mindspore_side,
            lambda step: low.inputs(_tensors(data.batch(step + after), _mindspore_tensor)),
            mindspore_step,
            _no_state,
            2,
        ),
        losses,
        {"first": list(entry.first), "stage": entry.stage, "cause": entry.cause},
    )


def _tensors(batch: dict[str, Any], tensor: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: tensor(array) for name, array in batch.items()}


def _listen(case: Any, name: str, losses: list[Any]) -> None:
    """Note what a case's loss function returns, wherever its step functions call it."""
    function = getattr(case, name)

    def listening(net: Any, batch: dict[str, Any]) -> Any:
        loss = function(net, batch)
        losses.append(loss)
        return loss

    setattr(case, name, listening)


def _set_modes(case: Any, torch_net: Any, mindspore_net: Any) -> None:
    """Train or eval, as the case says; a case that sets both sides at once is given both."""
    if hasattr(case, "set_modes"):
        case.set_modes(torch_net, case.mindspore_net() if mindspore_net is None else mindspore_net)
        return
    training = getattr(case, "MODE", "train") == "train"
    torch_net.train(training)
    if mindspore_net is not None:
        mindspore_net.set_train(training)


def _torch_step(case: Any) -> Callable[[Any, Any, dict[str, Any], int], None]:
    def step(net: Any, optimizer: Any, batch: dict[str, Any], number: int) -> None:
        if optimizer is not None:
            optimizer.zero_grad()
        loss = case.loss_torch(net, batch)
        if getattr(case, "GRAD", True):
            loss.backward()
            if optimizer is not None:
                optimizer.step()

    return step


def _mindspore_step(case: Any) -> Callable[[Any, Any, dict[str, Any], int], None]:
    import mindspore as ms

    def step(net: Any, optimizer: Any, batch: dict[str, Any], number: int) -> None:
        if not getattr(case, "GRAD", True):
            case.loss_ms(net, batch)
            return
        weights = list(net.trainable_params())
        _, gradients = ms.value_and_grad(lambda: case.loss_ms(net, batch), None, weights)()
        if optimizer is not None:
            optimizer(gradients)

    return step


def _no_state(net: Any, optimizer: Any) -> dict[str, Any]:
    return {}


def _torch_tensor(array: Any) -> Any:
    import numpy as np
    import torch

    return torch.from_numpy(np.array(array, order="C"))


def _mindspore_tensor(array: Any) -> Any:
    import mindspore as ms
    import numpy as np

    return ms.Tensor(np.array(array, order="C"))
