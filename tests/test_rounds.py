"""Rounds: what each run is told. The scripts here are not run; their dumps are written in their place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from paritydbg import replays, rounds
from paritydbg.dump.writer import DumpWriter
from paritydbg.errors import UsageError
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment, LayerRecord
from paritydbg.rounds import run_rounds
from paritydbg.session.forcing import read_plan
from paritydbg.session.launcher import Launched
from paritydbg.session.order import LaunchOrder

# Two layers of one kind and shape: only a person can know that they run in another order.
NAMES = {"ref": ("alpha", "beta"), "port": ("one", "two")}
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def script(command: Sequence[str], order: LaunchOrder, *, aside: bool = False) -> Launched:
    writer = DumpWriter(order.out, Environment("torch", "2", "cpu"))
    for name in NAMES[command[0]]:
        writer.record(LayerRecord(name, "Tanh", "torch.nn.Tanh", leaf=True, training=True))
        for role in (Role.INPUT, Role.OUTPUT):
            writer.add(EventKey(1, Phase.FORWARD, role, name), Values.of(VALUES))
    writer.close(True, "")
    plans.append((command[0], read_plan(order.forced_plan) if order.forced_plan else None))
    orders.append(order)
    return Launched(0, True)


plans: list[tuple[str, object]] = []
orders: list[LaunchOrder] = []


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    plans.clear()
    orders.clear()
    monkeypatch.setattr(rounds, "run_script", script)
    monkeypatch.setattr(replays, "run_script", script)


def test_a_map_reaches_the_plan_of_the_ports_replay(tmp_path: Path, scripts: None) -> None:
    map_file = tmp_path / "map.yaml"
    map_file.write_text("layers: {alpha: two, beta: one}", encoding="utf-8")
    order = LaunchOrder(out="")
    run_rounds(("ref",), ("port",), str(tmp_path / "kept"), order, runs=1, map_file=str(map_file))
    name, plan = plans[-1]
    assert name == "port"
    given = {key.name: value.orders for key, value in plan.given.items() if key.role is Role.OUTPUT}
    # Of the reference's four events, alpha's output is number 1 and beta's number 3.
    assert given == {"one": (3,), "two": (1,)}


def test_with_a_budget_sketches_come_first_and_are_all_where_they_agree(
    tmp_path: Path, scripts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(command: Sequence[str], order: LaunchOrder, *, aside: bool = False) -> Launched:
        return script(("ref",), order)

    monkeypatch.setattr(rounds, "run_script", told)
    made = run_rounds(("a",), ("b",), str(tmp_path), LaunchOrder(out=""), budget=1000)
    assert [order.sketch for order in orders] == [True, True]
    assert orders[1].weights_from == orders[1].inputs_from == orders[0].out
    assert made.sketches == (orders[0].out, orders[1].out)
    assert made.port == ""


def test_a_stress_pass_scales_both_sides_and_is_left_out_where_it_is_not_wanted(
    tmp_path: Path, scripts: None
) -> None:
    def run(folder: str, stress: bool) -> rounds.Rounds:
        order = LaunchOrder(out="")
        return run_rounds(("ref",), ("ref",), str(tmp_path / folder), order, runs=0, stress=stress)

    assert run("without", False).stressed is None
    assert not any(order.scaled for order in orders)
    orders.clear()
    made = run("with", True)
    scaled = [(order.out, order.roles) for order in orders if order.scaled]
    assert made.stressed is not None
    assert scaled == [(path, ("output",)) for path in made.stressed]
    assert all(order.weights_from == made.reference for order in orders if order.scaled)


def test_a_map_that_cannot_be_read_ends_before_the_first_run(tmp_path: Path, scripts: None) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        run_rounds(
            ("ref",), ("port",), str(tmp_path), LaunchOrder(out=""), map_file=str(tmp_path / "no")
        )
    assert not plans
