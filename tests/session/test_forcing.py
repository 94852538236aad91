"""Plans and values of a forced replay, without a framework."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paritydbg.errors import DumpError
from paritydbg.model.event import Event, EventKey, Phase, Role
from paritydbg.model.forcing import ForcingPlan, Given
from paritydbg.model.record import Environment, LayerRecord, RunRecord
from paritydbg.model.transform import IDENTITY, Transform
from paritydbg.session.forcing import Forcing, read_plan, write_plan

OUT = EventKey(1, Phase.FORWARD, Role.OUTPUT, "fc")
WEIGHT = EventKey(2, Phase.FORWARD, Role.PARAMETER, "fc.weight")


@dataclass
class Source:
    """A captured run in memory."""

    arrays: list[np.ndarray[Any, Any]]
    path: str = "ref.h5"
    run: RunRecord = field(default_factory=lambda: RunRecord(Environment("torch", "2", "cpu")))
    keys: list[EventKey] = field(default_factory=list)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(
            Event(key, order, a.shape, str(a.dtype), a.nbytes, str(order))
            for order, (key, a) in enumerate(
                zip(self.keys or repeat(OUT), self.arrays, strict=False)
            )
        )

    def load(self, event: Event) -> np.ndarray[Any, Any]:
        return self.arrays[event.order]


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = ForcingPlan(
        str(tmp_path / "ref.h5"),
        {
            OUT: Given((3, 4), Transform("concatenate", axis=1), 0),
            WEIGHT: Given((0,), Transform("permute", axes=(1, 0)), 0),
        },
    )
    write_plan(plan, str(tmp_path / "plan.json"))
    assert read_plan(str(tmp_path / "plan.json")) == plan


def test_a_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"given": 3}', encoding="utf-8")
    with pytest.raises(DumpError, match="no plan"):
        read_plan(str(file))


def test_values_come_in_the_ports_layout_and_only_in_its_shape() -> None:
    a, b = np.ones((2, 2), np.float32), np.zeros((2, 3), np.float32)
    plan = ForcingPlan("ref.h5", {OUT: Given((0, 1), Transform("concatenate", axis=1))})
    forcing = Forcing(plan, Source([a, b]))
    given = forcing.value(OUT, (2, 5))
    assert given is not None
    assert np.array_equal(given, np.concatenate([a, b], axis=1))
    assert forcing.value(OUT, (5, 2)) is None
    assert forcing.value(WEIGHT, (2, 5)) is None


def test_inputs_of_leaves_are_scaled_and_nothing_else_is() -> None:
    record = RunRecord(
        Environment("torch", "2", "cpu"),
        layers=(
            LayerRecord("fc", "Linear", "torch.nn.Linear", leaf=True, training=True),
            LayerRecord("net", "Net", "Net", leaf=False, training=True),
        ),
    )
    leaf, block, ids, out = (
        EventKey(1, Phase.FORWARD, role, name, 0, index)
        for role, name, index in (
            (Role.INPUT, "fc", 0),
            (Role.INPUT, "net", 0),
            (Role.INPUT, "fc", 1),
            (Role.OUTPUT, "fc", 0),
        )
    )
    arrays = [np.full(3, 2.0, np.float32), np.ones(3, np.float32), np.arange(3), np.ones(3)]
    source = Source(arrays, run=record, keys=[leaf, block, ids, out])
    plan = ForcingPlan("ref.h5", {key: Given((n,), IDENTITY) for n, key in enumerate(source.keys)})
    forcing = Forcing(plan, source, scaled=0.5)
    got = [forcing.value(key, (3,)) for key in source.keys]
    assert np.array_equal(got[0], np.full(3, 1.0, np.float32))
    assert got[0].dtype == np.float32
    for before, after in zip(arrays[1:], got[1:], strict=True):
        assert np.array_equal(before, after)


def test_parameters_are_given_for_their_step_alone() -> None:
    plan = ForcingPlan("ref.h5", {WEIGHT: Given((0,), Transform("permute", axes=(1, 0)))})
    forcing = Forcing(plan, Source([np.arange(6.0).reshape(2, 3)]))
    assert forcing.held(1, {"fc.weight"}) == {}
    assert forcing.held(2, {"fc.weight"})["fc.weight"].shape == (3, 2)
    assert forcing.held(2, {"other.weight"}) == {}
    assert set(forcing.held(2, {"weight"}, "fc")) == {"weight"}


def test_a_perturbation_moves_floats_by_at_most_one_spacing_and_is_drawn_anew_per_seed() -> None:
    values = np.random.default_rng(0).normal(size=(50, 50)).astype(np.float32)
    whole = np.arange(4)
    other = EventKey(1, Phase.FORWARD, Role.INPUT, "fc")
    plan = ForcingPlan("ref.h5", {OUT: Given((0,), IDENTITY), other: Given((1,), IDENTITY)})
    source = Source([values, whole])
    first = Forcing(plan, source, perturbed=1).value(OUT, (50, 50))
    again = Forcing(plan, source, perturbed=1).value(OUT, (50, 50))
    second = Forcing(plan, source, perturbed=2).value(OUT, (50, 50))
    assert first is not None
    assert second is not None
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    relative = np.abs(first - values) / np.abs(values)
    assert 0.0 < relative.max() <= 2.0**-22
    assert 0.4 < np.mean(first != values) < 0.9
    kept = Forcing(plan, source, perturbed=1).value(other, (4,))
    assert np.array_equal(kept, whole)
