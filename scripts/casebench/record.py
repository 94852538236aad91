"""Runs one case's two sides under capture, in a process of its own: ``ref.h5`` and ``port.h5``.

    python -m casebench.record FILE FAULT clean|faulty OUT EXPECTED

The expected answer goes into a file of its own, which the process that answers is never given.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from casebench.cases import ROOT, load_file


@dataclass(frozen=True)
class Side:
    """One framework's half of a case, in functions.

    Attributes:
        net: the net, weights in place.
        optimizer: or None.
        batch: of a step (from 0), as tensors of the framework.
        step: runs one step (net, optimizer, batch, step from 0).
        state: what is left after the last step, as arrays.
    """

    net: Any
    optimizer: Any
    batch: Callable[[int], dict[str, Any]]
    step: Callable[[Any, Any, dict[str, Any], int], None]
    state: Callable[[Any, Any], dict[str, Any]]
    steps: int


def main() -> None:
    """Record one case, told by the command line."""
    file, fault, variant, out, expected_out = sys.argv[1:6]
    faulty = variant == "faulty"
    os.environ["CASE_FAULT"] = "1" if faulty else "0"
    os.environ.setdefault("GLOG_v", "3")
    if Path(file).is_dir():
        expected = _record_sample(Path(file), fault, faulty, Path(out))
    else:
        expected = _record_case(Path(file), Path(out))
    Path(expected_out).write_text(json.dumps(expected), encoding="utf-8")


def _record_case(file: Path, out: Path) -> dict[str, Any]:
    import torch

    case = load_file(file)
    torch_net, mindspore_net = case.torch_net(), case.mindspore_net()
    case.transplant(torch_net, mindspore_net)
    _set_modes(case, torch_net, mindspore_net)
    inputs = case.inputs()
    inputs_ms = case.inputs_ms() if hasattr(case, "inputs_ms") else case.inputs()
    steps = getattr(case, "STEPS", 1)
    losses: list[Any] = []
    for name in ("loss_torch", "loss_ms"):
        _listen(case, name, losses)
    sides = (
        Side(
            torch_net,
            case.opt_torch(torch_net) if hasattr(case, "opt_torch") else None,
            lambda step: {name: _torch_tensor(array) for name, array in inputs.items()},
            getattr(case, "step_torch", None) or _torch_step(case),
            getattr(case, "state_torch", _no_state),
            steps,
        ),
        Side(
            mindspore_net,
            case.opt_ms(mindspore_net) if hasattr(case, "opt_ms") else None,
            lambda step: {name: _mindspore_tensor(array) for name, array in inputs_ms.items()},
            getattr(case, "step_ms", None) or _mindspore_step(case),
            getattr(case, "state_ms", _no_state),
            steps,
        ),
    )
    torch.set_num_threads(1)
    for side, name in zip(sides, ("ref.h5", "port.h5"), strict=True):
        _capture(side, out / name, losses)
    return dict(case.EXPECTED)


def _record_sample(pair: Path, fault: str, faulty: bool, out: Path) -> dict[str, Any]:
    """A sample pair: the port starts from the reference's weights through the product's transplant."""
    import mindspore as ms
    import torch

    import paritydbg

    sys.path.insert(0, str(ROOT))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ms.set_seed(0)
    package = f"sample_nets.{pair.name}"
    reference, port, data = (
        import_module(f"{package}.{name}") for name in ("torch_net", "mindspore_net", "data")
    )
    switched = fault if faulty else None
    torch_net, mindspore_net = reference.make_net(), port.make_net(switched)
    values = {name: t.detach().cpu().numpy() for name, t in torch_net.state_dict().items()}
    wrong = getattr(port, "wrong_weights", None)
    paritydbg.transplant(values if wrong is None else wrong(values, switched), mindspore_net)
    torch_net.train()
    mindspore_net.set_train(True)
    losses: list[Any] = []

    def torch_step(net: Any, optimizer: Any, batch: dict[str, Any], step: int) -> None:
        optimizer.zero_grad()
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

    sides = (
        Side(
            torch_net,
            reference.make_optimizer(torch_net),
            lambda step: {n: _torch_tensor(a) for n, a in data.batch(step + 1).items()},
            torch_step,
            _no_state,
            2,
        ),
        Side(
            mindspore_net,
            port.make_optimizer(mindspore_net, switched),
            lambda step: {n: _mindspore_tensor(a) for n, a in data.batch(step + 1).items()},
            mindspore_step,
            _no_state,
            2,
        ),
    )
    for side, name in zip(sides, ("ref.h5", "port.h5"), strict=True):
        _capture(side, out / name, losses)
    (entry,) = (f for f in load_file(pair / "faults.py").FAULTS if f.name == fault)
    return {"first": list(entry.first), "stage": entry.stage, "cause": entry.cause}


def _capture(side: Side, path: Path, losses: list[Any]) -> None:
    """Run the side's steps under capture."""
    import paritydbg

    with paritydbg.capture(side.net, path, optimizer=side.optimizer) as cap:
        for step in range(side.steps):
            losses.clear()
            batch = side.batch(step)
            cap.batch(**batch)
            side.step(side.net, side.optimizer, batch, step)
            if len(losses) == 1:
                cap.loss(losses[0])
            else:
                for number, loss in enumerate(losses):
                    cap.loss(loss, f"loss.{number}")
            cap.step()
        state = side.state(side.net, side.optimizer)
        if state:
            cap.state(**state)


def _listen(case: Any, name: str, losses: list[Any]) -> None:
    """Note what a case's loss function returns, wherever its step functions call it."""
    function = getattr(case, name)

    def listening(net: Any, batch: dict[str, Any]) -> Any:
        loss = function(net, batch)
        losses.append(loss)
        return loss

    setattr(case, name, listening)


def _set_modes(case: Any, torch_net: Any, mindspore_net: Any) -> None:
    if hasattr(case, "set_modes"):
        case.set_modes(torch_net, mindspore_net)
        return
    training = getattr(case, "MODE", "train") == "train"
    torch_net.train(training)
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


if __name__ == "__main__":
    main()
