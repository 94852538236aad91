"""Which layers are recorded in full around what sketches found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import paritydbg
from paritydbg.errors import UsageError
from paritydbg.model.report import Report
from paritydbg.window import parse_bytes, refined, window_around


class Net(nn.Module):
    def __init__(self, slope: float) -> None:
        super().__init__()
        for number in range(5):
            self.add_module(f"fc{number}", nn.Linear(64, 64))
        self.act = nn.LeakyReLU(slope)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc1(self.fc0(x))
        return self.fc4(self.fc3(self.fc2(self.act(x))))


def report(folder: Path, slope: float, **options: object) -> Report:
    torch.manual_seed(0)
    net, port = Net(0.01), Net(slope)
    port.load_state_dict(net.state_dict())
    x = torch.randn(32, 64)
    for one, name in ((net, "ref"), (port, "port")):
        with paritydbg.capture(one, folder / f"{name}.h5", **options) as cap:  # type: ignore[arg-type]
            cap.batch(x=x)
            one(x).square().sum().backward()
    return paritydbg.diff(folder / "ref.h5", folder / "port.h5")


def names(told: Report, folder: Path, budget: int) -> tuple[str, ...]:
    with paritydbg.open_dump(folder / "ref.h5") as dump:
        window = window_around(told, dump.events, budget)
    assert window is not None
    assert window.reference == window.port
    assert window.nbytes <= budget or len(window.reference) == 1
    return window.reference


def test_the_named_layer_comes_first_then_its_neighbours_as_far_as_the_budget_goes(
    tmp_path: Path,
) -> None:
    told = report(tmp_path, 0.3, sketch=True)
    assert told.findings[0].place == "act"
    assert names(told, tmp_path, 1) == ("act",)
    some = names(told, tmp_path, 200_000)
    assert some[0] == "act"
    assert set(some[1:3]) == {"fc1", "fc2"}
    assert 3 <= len(some) < 6
    assert len(names(told, tmp_path, 10**9)) == 6


def test_where_nothing_is_found_nothing_is_recorded_in_full(tmp_path: Path) -> None:
    told = report(tmp_path, 0.01, sketch=True)
    with paritydbg.open_dump(tmp_path / "ref.h5") as dump:
        assert window_around(told, dump.events, 10**9) is None


def test_a_refined_report_keeps_the_places_of_the_whole_net_and_takes_reasons_from_the_window(
    tmp_path: Path,
) -> None:
    (tmp_path / "full").mkdir()
    sketched = report(tmp_path, 0.3, sketch=True)
    full = report(tmp_path / "full", 0.3, layers=("act", "fc1", "fc2"))
    edge = replace(full.findings[0], place="before fc1")
    done = refined(sketched, replace(full, findings=(*full.findings, edge)))
    assert [f.place for f in done.findings] == [f.place for f in sketched.findings]
    assert done.findings[0].evidence == full.findings[0].evidence
    assert "1 were looked at in full" in done.notes[-1]


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("2 GiB", 2 * 2**30), ("1.5k", 1500), ("7", 7)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "many", "-3MB", "0", "MB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no size in bytes"):
        parse_bytes(text)
