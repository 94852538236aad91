"""Faults of every rung, put into one of two torch nets, are named where they are; clean nets are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import paritydbg
from paritydbg.model.comparison import Verdict
from paritydbg.model.finding import Stage
from tests.verdict.two_runs import compared, places


class Net(nn.Module):
    """A small net with glue, a residual, a norm and an activation; a fault by name."""

    def __init__(self, fault: str = "", seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.fault = fault
        self.first = nn.Linear(12, 16)
        self.norm = nn.LayerNorm(16, eps=1e-3 if fault == "eps" else 1e-5)
        self.act = nn.GELU("tanh" if fault == "gelu" else "none")
        self.block = Block(fault)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fault == "input":
            x = x * 1.01
        x = self.act(self.norm(self.first(x)))
        if self.fault == "glue":
            x = x.flip(1)
        x = self.block(x)
        if self.fault == "detach":
            x = x.detach()
        return self.head(x)


class Block(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.inner = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        if self.fault == "nan":
            y = torch.where(y > y.max() - 1e-6, torch.nan, y)
        if self.fault == "residual":
            return y
        if self.fault == "scaled gradient":
            y = 2 * y - y.detach()
        if self.fault == "sign":
            y = -y + 2 * y.detach()
        return x + y


@pytest.mark.parametrize("seed", range(4))
def test_a_clean_net_of_another_summation_order_is_quiet(tmp_path: Path, seed: int) -> None:
    class Reordered(Net):
        """Computes the same in an order that rounds differently."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                exact = super().forward(x.double().float())
            order = torch.randperm(12)
            first = nn.functional.linear(x[:, order], self.first.weight[:, order], self.first.bias)
            assert exact.shape[0] == x.shape[0]
            return self.head(self.block(self.act(self.norm(first))))

    class Plain(Reordered):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first = nn.functional.linear(x, self.first.weight, self.first.bias)
            return self.head(self.block(self.act(self.norm(first))))

    report = compared(tmp_path, Plain(seed=seed), Reordered(seed=seed), steps=4)
    assert places(report) == []
    assert report.coverage.share > 0.7
    assert any(c.metrics and c.metrics.difference_l2 for c in report.comparisons)


@pytest.mark.parametrize(
    ("fault", "place", "stage"),
    [
        ("eps", "norm", Stage.FORWARD),
        ("gelu", "act", Stage.FORWARD),
        ("glue", "before block.inner", Stage.FORWARD),
        ("residual", "block", Stage.FORWARD),
        ("detach", "after block", Stage.BACKWARD),
        ("scaled gradient", "after block.inner", Stage.BACKWARD),
        ("sign", "after block.inner", Stage.BACKWARD),
        ("input", "before first", Stage.FORWARD),
    ],
)
def test_the_place_and_the_rung_of_a_fault_are_named(
    tmp_path: Path, fault: str, place: str, stage: Stage
) -> None:
    report = compared(tmp_path, Net(), Net(fault))
    assert places(report)[0] == place
    assert report.findings[0].stage is stage
    assert report.exit_code == 1


def test_what_follows_is_inherited_and_counted(tmp_path: Path) -> None:
    report = compared(tmp_path, Net(), Net("residual"))
    (first,) = report.findings
    verdicts = [c.verdict for c in report.comparisons]
    assert first.followers == verdicts.count(Verdict.INHERITED) > 20
    assert {c.pair.first.key.name for c in report.comparisons if c.verdict is Verdict.DIVERGED} == {
        "block"
    }


def test_the_producer_of_a_nan_is_named_not_its_carriers(tmp_path: Path) -> None:
    report = compared(tmp_path, Net(), Net("nan"))
    assert places(report) == ["block"]
    assert report.findings[0].verdict is Verdict.NONFINITE


def test_a_small_difference_counts_only_with_a_reason(tmp_path: Path) -> None:
    class Hidden(nn.LayerNorm):
        """An epsilon that no attribute tells."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.layer_norm(x, (16,), self.weight, self.bias, 2e-5)

    told, untold = Net(), Net()
    told.norm.eps = 2e-5
    untold.norm = Hidden(16)
    with_reason = compared(tmp_path, Net(), told)
    assert places(with_reason) == ["norm"]
    assert with_reason.findings[0].attributes[0].name == "eps"
    assert with_reason.findings[0].evidence is not None
    (tmp_path / "b").mkdir()
    without = compared(tmp_path / "b", Net(), untold)
    assert places(without) == []
    assert [f.place for f in without.suspects] == ["norm"]


def test_weights_that_differ_come_first_and_are_one_finding(tmp_path: Path) -> None:
    report = compared(tmp_path, Net(seed=0), Net("residual", seed=1), same_weights=False)
    assert report.findings[0].stage is Stage.WEIGHTS
    assert len(report.findings[0].also) >= 3


def test_hidden_channels_in_another_order_are_no_fault(tmp_path: Path) -> None:
    def net() -> nn.Sequential:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(12, 9), nn.Tanh(), nn.Linear(9, 4))

    other = net()
    order = torch.tensor([3, 1, 4, 0, 8, 2, 6, 5, 7])
    with torch.no_grad():
        other[0].weight.copy_(other[0].weight[order].clone())
        other[0].bias.copy_(other[0].bias[order].clone())
        other[2].weight.copy_(other[2].weight[:, order].clone())
    report = compared(tmp_path, net(), other, same_weights=False)
    assert places(report) == []


def test_dropout_with_other_masks_is_no_fault_and_another_rate_is(tmp_path: Path) -> None:
    def net(rate: float) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(12, 32), nn.Dropout(rate), nn.Linear(32, 4))

    report = compared(tmp_path, net(0.5), net(0.5))
    assert places(report) == []
    assert "--no-dropout" in " ".join(report.notes)
    (tmp_path / "b").mkdir()
    assert places(compared(tmp_path / "b", net(0.5), net(0.25)))[0] == "1"


def adam(**options: Any) -> Any:
    return lambda net: torch.optim.AdamW(net.parameters(), 1e-3, **options)


@pytest.mark.parametrize(
    ("mine", "yours", "place"),
    [
        (adam(), adam(weight_decay=0.0), "step1"),
        (adam(), lambda net: torch.optim.AdamW(net.parameters(), 1.02e-3), "step1"),
        (
            lambda net: torch.optim.SGD(net.parameters(), 0.1, momentum=0.9),
            lambda net: torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True),
            "step1",
        ),
        (
            lambda net: torch.optim.SGD(net.parameters(), 0.1, momentum=0.9),
            lambda net: torch.optim.SGD(net.parameters(), 0.1, momentum=0.8),
            "step2",
        ),
    ],
)
def test_an_update_that_differs_is_named_by_its_step(
    tmp_path: Path, mine: Any, yours: Any, place: str
) -> None:
    report = compared(
        tmp_path, Net(), Net(), steps=3, optimizer=mine, port_options={"optimizer": yours}
    )
    assert places(report)[0] == place
    assert report.findings[0].stage is Stage.UPDATE


def test_an_optimizer_of_other_tensors_is_told_from_a_wrong_rule(tmp_path: Path) -> None:
    class Detaches(torch.optim.SGD):
        """Moves the net once, and something else from then on."""

        def step(self, closure: Any = None) -> Any:  # type: ignore[override]
            if self.state.setdefault("done", {}):
                return None
            self.state["done"]["yes"] = True
            return super().step()

    report = compared(
        tmp_path,
        Net(),
        Net(),
        steps=3,
        port_options={"optimizer": lambda net: Detaches(net.parameters(), 0.1)},
    )
    assert places(report)[0] == "step2"
    assert report.findings[0].stage is Stage.TOOL_USAGE


def test_a_loss_that_differs_is_the_loss(tmp_path: Path) -> None:
    def halved(output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(output, label) / 2

    report = compared(tmp_path, Net(), Net(), port_options={"loss": halved})
    assert places(report)[0] == "loss"
    assert report.findings[0].stage is Stage.LOSS


def test_a_loss_scale_that_is_taken_out_again_is_no_fault(tmp_path: Path) -> None:
    def train(net: nn.Module, path: Path, scale: float) -> None:
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        with paritydbg.capture(net, path, optimizer=optimizer):
            for step in range(2):
                x = torch.randn(16, 12, generator=torch.Generator().manual_seed(step))
                net.zero_grad()
                (net(x).square().mean() * scale).backward()
                for parameter in net.parameters():
                    parameter.grad /= scale  # type: ignore[operator]
                optimizer.step()

    train(Net(), tmp_path / "ref.h5", 1.0)
    train(Net(), tmp_path / "port.h5", 1024.0)
    report = paritydbg.diff(tmp_path / "ref.h5", tmp_path / "port.h5")
    assert places(report) == []
    assert any("loss scale" in note for note in report.notes)
    train(Net("scaled gradient"), tmp_path / "faulty.h5", 1024.0)
    faulty = paritydbg.diff(tmp_path / "ref.h5", tmp_path / "faulty.h5")
    assert places(faulty)


def test_another_precision_is_a_setting_not_a_layer(tmp_path: Path) -> None:
    class Half(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return super().forward(x).float()

    report = compared(tmp_path, Net(), Half())
    assert report.findings[0].stage is Stage.CONFIG
    assert report.findings[0].place == "first"
    assert [cause.slug for cause in report.findings[0].causes] == ["precision-level"]
    (tmp_path / "b").mkdir()
    assert places(compared(tmp_path / "b", Half(), Half())) == []


def test_running_statistics_are_judged_after_the_step(tmp_path: Path) -> None:
    def net(momentum: float) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(12, 8), nn.BatchNorm1d(8, momentum=momentum), nn.Linear(8, 4)
        )

    report = compared(tmp_path, net(0.1), net(0.9), steps=1)
    assert places(report) == ["1.running_mean"]
    assert report.findings[0].stage is Stage.RUNNING_STATS


@pytest.mark.parametrize("kind", ["missing layer", "frozen", "untied"])
def test_structure_that_differs_is_found_without_values(tmp_path: Path, kind: str) -> None:
    class Stack(nn.Module):
        def __init__(self, port: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.first = nn.Linear(12, 8)
            self.layers = nn.ModuleList(
                nn.Linear(8, 8) for _ in range(2 if port and kind == "missing layer" else 3)
            )
            self.head = nn.Linear(8, 4)
            if kind == "untied" and not port:
                self.layers[1].weight = self.layers[0].weight
            if kind == "frozen" and port:
                self.first.bias.requires_grad_(False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return self.head(x)

    report = compared(tmp_path, Stack(False), Stack(True))
    first = report.findings[0]
    assert first.stage is Stage.STRUCTURE
    assert first.static
    expected = {"missing layer": "layers.2", "frozen": "first.bias", "untied": "layers.0.weight"}
    assert first.place == expected[kind]
