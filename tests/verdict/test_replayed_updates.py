"""Updates behind a dropout: forced replays give both optimizers the reference's gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn as mnn
from mindspore import ops
from torch import nn

import paritydbg
from paritydbg.model.report import Report

X = np.random.default_rng(0).normal(size=(16, 5)).astype(np.float32)


class Reference(nn.Module):
    """The bias before the norm has no gradient but rounding, which is all that differs of it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.norm = nn.BatchNorm1d(8, momentum=0.1)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.norm(self.first(self.drop(x))))


class Port(mnn.Cell):
    def __init__(self, momentum: float) -> None:
        super().__init__()
        self.first = mnn.Dense(5, 8)
        self.norm = mnn.BatchNorm1d(8, momentum=momentum)
        self.drop = mnn.Dropout(p=0.5)
        self.last = mnn.Dense(8, 3)

    def construct(self, x: ms.Tensor) -> Any:
        return self.last(self.norm(self.first(self.drop(x))))


def report(folder: Path, clips: bool, optimizer: str, momentum: float = 0.9) -> Report:
    """Of two steps on both sides, each with its own masks."""
    torch.manual_seed(0)
    net, port = Reference(), Port(momentum)
    paritydbg.transplant(
        {name: value.detach().numpy() for name, value in net.state_dict().items()}, port
    )
    port.set_train(True)
    start = {name: value.clone() for name, value in net.state_dict().items()}
    ref, free, own, forced = (folder / f"{name}.h5" for name in ("ref", "port", "own", "forced"))

    def torch_run(path: Path, **options: Any) -> None:
        torch.manual_seed(1)
        net.load_state_dict(start)
        adam = torch.optim.Adam(net.parameters(), lr=1e-2)
        with paritydbg.capture(net, path, optimizer=adam, **options):
            for _ in range(2):
                adam.zero_grad()
                (net(torch.from_numpy(X)) ** 2).sum().backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                adam.step()

    begun = {parameter.name: parameter.asnumpy().copy() for parameter in port.get_parameters()}

    def port_run(path: Path, **options: Any) -> None:
        for parameter in port.get_parameters():
            parameter.set_data(ms.Tensor(begun[parameter.name]))
        made = getattr(mnn, optimizer)(port.trainable_params(), learning_rate=1e-2)
        step = ms.value_and_grad(lambda: (port(ms.Tensor(X)) ** 2).sum(), None, made.parameters)
        with paritydbg.capture(port, path, optimizer=made, **options):
            for _ in range(2):
                _, gradients = step()
                made(ops.clip_by_global_norm(gradients, 1.0) if clips else gradients)

    torch_run(ref)
    torch_run(own, forced_by=paritydbg.plan_forcing(ref, ref))
    port_run(free)
    port_run(forced, forced_by=paritydbg.plan_forcing(own, free))
    return paritydbg.diff(ref, free, forced=(own, forced))


def told(found: Report) -> list[tuple[str, str]]:
    return [(finding.place, finding.causes[0].slug) for finding in found.findings]


def test_a_right_update_behind_other_masks_is_quiet(tmp_path: Path) -> None:
    assert told(report(tmp_path, clips=True, optimizer="Adam")) == []


@pytest.mark.parametrize(
    ("clips", "optimizer", "causes"),
    [
        (False, "Adam", ["clip-missing"]),
        (True, "AdamWeightDecay", ["adam-bias-correction-missing"]),
        (False, "AdamWeightDecay", ["clip-missing", "adam-bias-correction-missing"]),
    ],
)
def test_clipping_and_the_rule_are_named_behind_other_masks(
    tmp_path: Path, clips: bool, optimizer: str, causes: list[str]
) -> None:
    found = report(tmp_path, clips=clips, optimizer=optimizer)
    assert told(found) == [("step1", cause) for cause in causes]


def test_running_statistics_are_judged_behind_other_masks(tmp_path: Path) -> None:
    found = report(tmp_path, clips=True, optimizer="Adam", momentum=0.1)
    assert told(found)[0] == ("norm.running_mean", "bn-momentum-convention")
