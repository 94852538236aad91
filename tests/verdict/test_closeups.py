"""A closer look at two tensors: the same bins for both sides, the elements that part most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paritydbg.dump.reader import open_dump
from paritydbg.dump.writer import DumpWriter
from paritydbg.model.closeup import Closeup
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.pair import EventPair
from paritydbg.model.record import Environment
from paritydbg.verdict import closeups
from tests.report.example import comparison as example_of

Array = np.ndarray[Any, Any]
KEY = EventKey(1, Phase.FORWARD, Role.OUTPUT, "fc")
METRICS = example_of("fc", 0, 2.0, Verdict.DIVERGED).metrics


def look(folder: Path, mine: Array, yours: Array) -> Closeup | None:
    paths = []
    for name, array in (("ref", mine), ("port", yours)):
        paths.append(str(folder / f"{name}.h5"))
        writer = DumpWriter(paths[-1], Environment("torch", "2", "cpu"))
        writer.add(KEY, Values.of(array))
        writer.close(True, "")
    with open_dump(paths[0]) as left, open_dump(paths[1]) as right:
        pair = EventPair(left.events, right.events)
        comparison = Comparison(pair, Verdict.DIVERGED, METRICS)
        return closeups.closeup(comparison, left, right)


def test_counts_and_worst_elements_are_right(tmp_path: Path) -> None:
    mine = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    yours = mine.copy()
    yours[2, 3] += 5
    yours[1, 1] -= 2
    found = look(tmp_path, mine, yours)
    assert found is not None
    assert [one.index for one in found.worst] == [(2, 3), (1, 1)]
    assert found.worst[0].port - found.worst[0].reference == pytest.approx(5)
    assert (found.reference.low, found.reference.high) == (found.port.low, found.port.high)
    for histogram in (found.reference, found.port, found.difference):
        assert sum(histogram.counts) == found.looked_at == found.count == 24
    assert found.difference.low == pytest.approx(-2)
    assert found.difference.counts[-1] == 1


def test_what_is_not_finite_is_listed_and_not_counted(tmp_path: Path) -> None:
    mine = np.arange(8, dtype=np.float32)
    yours = mine.copy()
    yours[5] = np.nan
    found = look(tmp_path, mine, yours)
    assert found is not None
    assert [one.index for one in found.worst] == [(5,)]
    assert found.looked_at == 7


def test_equal_values_make_one_bin(tmp_path: Path) -> None:
    found = look(tmp_path, np.ones(4, np.float32), np.ones(4, np.float32))
    assert found is not None
    assert found.reference.counts == (4,)
    assert found.worst == ()


def test_large_tensors_are_sampled_but_searched_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closeups, "_SAMPLED", 10)
    mine = np.arange(100, dtype=np.float32)
    yours = mine.copy()
    yours[[37, 91]] += [1, 3]
    found = look(tmp_path, mine, yours)
    assert found is not None
    assert [one.index for one in found.worst] == [(91,), (37,)]
    assert (found.looked_at, found.count) == (10, 100)


def test_other_shapes_are_not_looked_at(tmp_path: Path) -> None:
    assert look(tmp_path, np.ones(4, np.float32), np.ones(5, np.float32)) is None
