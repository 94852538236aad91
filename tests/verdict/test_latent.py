"""Epsilons that hide beside ordinary values: told as latent when layers are fed smaller ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn as mnn
from torch import nn

import paritydbg
from paritydbg.model.comparison import Verdict
from paritydbg.model.report import Report

X = np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32)


class Reference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.norm = nn.LayerNorm(8, eps=1e-12)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.norm(self.first(x)))


class Port(mnn.Cell):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.first = mnn.Dense(5, 8)
        self.norm = mnn.LayerNorm((8,), epsilon=eps)
        self.last = mnn.Dense(8, 3)

    def construct(self, x: ms.Tensor) -> Any:
        return self.last(self.norm(self.first(x)))


def report(folder: Path, eps: float, stressed: bool) -> Report:
    torch.manual_seed(0)
    net, port = Reference(), Port(eps)
    paritydbg.transplant(
        {name: value.detach().numpy() for name, value in net.state_dict().items()}, port
    )
    port.set_train(True)

    def torch_run(path: Path, **options: Any) -> None:
        net.zero_grad()
        with paritydbg.capture(net, path, **options):
            net(torch.from_numpy(X)).sum().backward()

    def port_run(path: Path, **options: Any) -> None:
        with paritydbg.capture(port, path, **options):
            port(ms.Tensor(X))

    ref, free, own, forced, small_ref, small_port = (
        folder / f"{name}.h5"
        for name in ("ref", "free", "own", "forced", "small_ref", "small_port")
    )
    torch_run(ref)
    mine = paritydbg.plan_forcing(ref, ref)
    torch_run(own, forced_by=mine)
    torch_run(small_ref, forced_by=mine, scaled=0.01)
    port_run(free)
    yours = paritydbg.plan_forcing(own, free)
    port_run(forced, forced_by=yours)
    port_run(small_port, forced_by=yours, scaled=0.01)
    small = (small_ref, small_port) if stressed else None
    return paritydbg.diff(ref, free, forced=(own, forced), stressed=small)


@pytest.mark.parametrize("stressed", [False, True])
def test_a_hidden_epsilon_is_latent_and_found_by_smaller_inputs_alone(
    tmp_path: Path, stressed: bool
) -> None:
    found = report(tmp_path, 1e-7, stressed)
    assert found.exit_code == 0
    latent = [one for one in found.suspects if one.summary.startswith("latent")]
    assert [one.place for one in latent] == (["norm"] if stressed else [])
    for one in latent:
        assert one.verdict is Verdict.SUSPECT
        assert [cause.slug for cause in one.causes][:1] == ["layernorm-eps-default"]


def test_layers_that_agree_on_smaller_inputs_are_no_suspects(tmp_path: Path) -> None:
    found = report(tmp_path, 1e-12, True)
    assert found.exit_code == 0
    assert not found.suspects
    assert any("on inputs scaled down" in note for note in found.notes)
