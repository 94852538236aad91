"""Forced replays on real nets: every fault by its own name, in one run; nothing on a right port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import torch
from mindspore import nn as mnn
from torch import nn

import paritydbg
from paritydbg.model.report import Report

X = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)


class Reference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.leaky = nn.LeakyReLU(0.01)
        self.second = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8, eps=1e-5)
        self.third = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.third(self.norm(self.second(self.leaky(self.first(x)))))


class Port(mnn.Cell):
    def __init__(self, slope: float, eps: float) -> None:
        super().__init__()
        self.first = mnn.Dense(5, 8)
        self.leaky = mnn.LeakyReLU(slope)
        self.second = mnn.Dense(8, 8)
        self.norm = mnn.LayerNorm((8,), epsilon=eps)
        self.third = mnn.Dense(8, 3)

    def construct(self, x: ms.Tensor) -> Any:
        return self.third(self.norm(self.second(self.leaky(self.first(x)))))


def reports(folder: Path, slope: float, eps: float) -> tuple[Report, Report]:
    """What the free runs alone tell, and what forced replays add."""
    torch.manual_seed(0)
    net, port = Reference(), Port(slope, eps)
    paritydbg.transplant(
        {name: value.detach().numpy() for name, value in net.state_dict().items()}, port
    )
    port.set_train(True)
    ref, free, own, forced = (folder / f"{name}.h5" for name in ("ref", "port", "own", "forced"))

    def torch_run(path: Path, **options: Any) -> None:
        net.zero_grad()
        with paritydbg.capture(net, path, **options):
            (net(torch.from_numpy(X)) ** 2).sum().backward()

    def port_run(path: Path, **options: Any) -> None:
        with paritydbg.capture(port, path, **options):
            ms.value_and_grad(
                lambda: (port(ms.Tensor(X)) ** 2).sum(), None, port.trainable_params()
            )()

    torch_run(ref)
    moved, exact = folder / "moved.h5", folder / "exact.h5"
    plan = paritydbg.plan_forcing(ref, ref)
    torch_run(moved, forced_by=plan, perturbed=1)
    torch_run(exact, forced_by=plan, promoted=True)
    torch_run(own, forced_by=plan, noise_from=(moved, exact))
    port_run(free)
    port_run(forced, forced_by=paritydbg.plan_forcing(own, free))
    return paritydbg.diff(ref, free), paritydbg.diff(ref, free, forced=(own, forced))


def test_a_right_port_is_quiet_and_the_noise_is_measured(tmp_path: Path) -> None:
    free, forced = reports(tmp_path, slope=0.01, eps=1e-5)
    assert free.exit_code == forced.exit_code == 0
    assert any("measured on the reference" in note for note in forced.notes)
    assert any("against float64" in note for note in forced.notes)
    assert not any("modelled" in note for note in forced.notes)


def test_two_faults_in_one_net_are_both_named(tmp_path: Path) -> None:
    _, forced = reports(tmp_path, slope=0.2, eps=1e-2)
    assert {finding.place for finding in forced.findings} == {"leaky", "norm"}


def test_behind_a_fault_every_layer_agrees_on_the_references_values(tmp_path: Path) -> None:
    free, forced = reports(tmp_path, slope=0.2, eps=1e-5)
    assert [finding.place for finding in forced.findings] == ["leaky"]
    far = {c.pair.first.key.name: c for c in free.comparisons if c.pair.first.key.role == "output"}
    near = {
        c.pair.first.key.name: c for c in forced.comparisons if c.pair.first.key.role == "output"
    }
    assert far["third"].metrics is not None
    assert near["third"].metrics is not None
    assert far["third"].metrics.relative_l2 > 1e-2
    assert near["third"].metrics.relative_l2 < 1e-6


class Drawing(nn.Module):
    """Draws: without its generator's state a repeated run is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.drop(self.first(x))


def drawn(path: Path, net: nn.Module, x: Any, **options: Any) -> None:
    with paritydbg.capture(net, path, **options) as cap:
        cap.batch(x=x)
        (net(torch.from_numpy(x)) ** 2).sum().backward()


def test_a_repeated_run_draws_as_the_first_did(tmp_path: Path) -> None:
    net, paths = Drawing(), [tmp_path / f"{name}.h5" for name in ("ref", "moved", "own")]
    drawn(paths[0], net, X)
    plan = paritydbg.plan_forcing(paths[0], paths[0])
    drawn(paths[1], net, X, forced_by=plan, perturbed=1)
    drawn(paths[2], net, X, forced_by=plan, noise_from=paths[1:2])
    report = paritydbg.diff(paths[0], paths[0], forced=(paths[2], paths[2]))
    assert report.exit_code == 0
    assert not any("another run" in note or "other random" in note for note in report.notes)
    with paritydbg.open_dump(paths[2]) as dump:
        spreads = {r.name: r.spread for r in dump.run.noise if r.role == "grad_input"}
    # Another mask would move it by as much as it is.
    assert spreads["drop"] is not None
    assert spreads["drop"] < 1e-5


def test_a_replay_that_was_fed_something_else_is_said_to_be_another_run(tmp_path: Path) -> None:
    net, paths = Drawing(), [tmp_path / f"{name}.h5" for name in ("ref", "own")]
    drawn(paths[0], net, X)
    plan = paritydbg.plan_forcing(paths[0], paths[0])
    drawn(paths[1], net, X + 1, forced_by=plan)
    report = paritydbg.diff(paths[0], paths[0], forced=(paths[1], paths[1]))
    (note,) = {note for note in report.notes if "reference's replay was another run" in note}
    assert "inputs:x" in note


class DropPort(mnn.Cell):
    """Drops with its own masks, through a layer and through a function; ``wrong`` scales a gradient."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.first = mnn.Dense(5, 64)
        self.drop = mnn.Dropout(p=0.5)
        self.second = mnn.Dense(64, 64)
        self.third = mnn.Dense(64, 3)
        self.wrong = wrong

    def construct(self, x: ms.Tensor) -> Any:
        y = self.drop(self.first(x))
        if self.wrong:
            y = 2.0 * y - ms.ops.stop_gradient(y)
        return self.third(ms.ops.dropout(self.second(y), 0.3, training=True))


class DropReference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 64), nn.Linear(64, 64)
        self.drop, self.third = nn.Dropout(0.5), nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.drop(self.first(x))
        return self.third(nn.functional.dropout(self.second(y), 0.3))


def with_masks(folder: Path, wrong: bool) -> Report:
    torch.manual_seed(0)
    net, port = DropReference(), DropPort(wrong)
    values = {name: value.detach().numpy() for name, value in net.state_dict().items()}
    paritydbg.transplant(values, port)
    port.set_train(True)
    x = np.random.default_rng(1).normal(size=(32, 5)).astype(np.float32)
    ref, free, own, forced = (folder / f"{name}.h5" for name in ("ref", "port", "own", "forced"))

    def port_run(path: Path, **options: Any) -> None:
        with paritydbg.capture(port, path, **options):
            ms.value_and_grad(
                lambda: (port(ms.Tensor(x)) ** 2).sum(), None, port.trainable_params()
            )()

    drawn(ref, net, x)
    drawn(own, net, x, forced_by=paritydbg.plan_forcing(ref, ref))
    port_run(free)
    port_run(forced, forced_by=paritydbg.plan_forcing(own, free))
    return paritydbg.diff(ref, free, forced=(own, forced))


def test_masks_of_its_own_are_no_fault_of_a_port_forward_or_backward(tmp_path: Path) -> None:
    report = with_masks(tmp_path, wrong=False)
    assert [finding.place for finding in report.findings] == []
    assert any("own mask" in comparison.reason for comparison in report.comparisons)


def test_behind_other_masks_a_wrong_gradient_is_still_found(tmp_path: Path) -> None:
    report = with_masks(tmp_path, wrong=True)
    assert report.exit_code == 1
    assert report.findings[0].place in ("after drop", "before second", "second")


class Residual(nn.Module):
    """A block that adds what came in; ``cut`` detaches it."""

    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(8), nn.Linear(8, 8)
        self.cut = cut

    def forward(self, x: torch.Tensor) -> Any:
        return (x.detach() if self.cut else x) + self.inner(self.norm(x))


class Blocks(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 3)
        self.one, self.two = Residual(False), Residual(cut)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.two(self.one(self.first(x))))


def test_a_residual_that_is_cut_is_told_from_a_gradient_of_its_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, port = Blocks(cut=False), Blocks(cut=True)
    port.load_state_dict(net.state_dict())
    ref, free, own, forced = (tmp_path / f"{name}.h5" for name in ("ref", "port", "own", "forced"))
    drawn(ref, net, X)
    drawn(own, net, X, forced_by=paritydbg.plan_forcing(ref, ref))
    drawn(free, port, X)
    drawn(forced, port, X, forced_by=paritydbg.plan_forcing(own, free))
    report = paritydbg.diff(ref, free, forced=(own, forced))
    (finding,) = report.findings
    assert finding.place in ("two", "after one")
    assert finding.causes[0].slug == "stop-gradient-extra"
