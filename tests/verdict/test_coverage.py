"""What counts as compared, and what is said of tensors that nothing can be told of."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from paritydbg.report.lines import headline
from tests.verdict.two_runs import compared, places


class Net(nn.Module):
    """The activation is a layer, or a call that no hook sees."""

    def __init__(self, as_layer: bool, counts: bool = False, factor: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(12, 16)
        self.act = nn.ReLU() if as_layer else None
        self.norm = nn.BatchNorm1d(16, track_running_stats=counts)
        self.last = nn.Linear(16, 4)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = self.act(x) if self.act is not None else torch.relu(x)
        return self.last(self.norm(x) * self.factor)


def test_a_layer_without_partner_is_compared_through_its_neighbours(tmp_path: Path) -> None:
    report = compared(tmp_path, Net(True), Net(False))
    assert report.exit_code == 0
    assert report.coverage.compared == report.coverage.captured


def test_what_no_neighbour_shows_is_counted_as_not_compared(tmp_path: Path) -> None:
    class Lone(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert self.act is not None
            return super().forward(x) + 0.0 * self.act(x - 7.0).sum()

    report = compared(tmp_path, Lone(True), Net(False))
    assert report.coverage.compared < report.coverage.captured


def test_counters_of_batches_are_no_part_of_the_coverage(tmp_path: Path) -> None:
    with_counters = compared(tmp_path, Net(True, counts=True), Net(True, counts=True))
    assert with_counters.coverage.share == 1.0


class Dropping(nn.Module):
    def __init__(self, masks: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(12, 16)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(16, 4)
        self.masks = masks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(self.masks)
        return self.last(self.drop(self.first(x)))


def test_parity_is_not_claimed_of_what_lies_behind_other_masks(tmp_path: Path) -> None:
    report = compared(tmp_path, Dropping(1), Dropping(2), steps=1)
    assert places(report) == []
    assert report.coverage.masked > 5
    assert headline(report) == (
        "No difference beyond rounding in what can be told: "
        f"{report.coverage.masked} tensors lie behind dropout"
    )


def test_the_same_masks_hide_nothing(tmp_path: Path) -> None:
    report = compared(tmp_path, Dropping(1), Dropping(1), steps=1)
    assert report.coverage.masked == 0
    assert headline(report).startswith("Parity")
