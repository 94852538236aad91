"""The reference's weights for a port, by the pairs that a person gave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paritydbg.dump.reader import open_dump
from paritydbg.dump.writer import DumpWriter
from paritydbg.errors import UsageError
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment, LayerRecord, ParameterRecord
from paritydbg.session.order import LaunchOrder
from paritydbg.session.same_start import SameStart


def side(*names: str) -> tuple[list[LayerRecord], list[ParameterRecord]]:
    """Layers of one kind and shape: neither names nor values tell them apart."""
    layers = [LayerRecord(name, "Linear", "torch.nn.Linear", True, True) for name in names]
    weights = [ParameterRecord(f"{name}.weight", name, (2, 2), "float32", True) for name in names]
    return layers, weights


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    path = tmp_path / "ref.h5"
    writer = DumpWriter(str(path), Environment("torch", "2", "cpu"))
    layers, weights = side("alpha", "beta")
    for record in (*layers, *weights):
        writer.record(record)
    for number, weight in enumerate(weights):
        key = EventKey(1, Phase.FORWARD, Role.PARAMETER, weight.name)
        writer.add(key, Values.of(np.full((2, 2), number, np.float32)))
    writer.close(True, "")
    return path


@pytest.mark.parametrize(
    ("given", "alpha"),
    [
        ({"layer_pairs": (("alpha", "two"), ("beta", "one"))}, "two.weight"),
        ({"parameter_pairs": (("alpha.weight", "two.weight"),)}, "two.weight"),
        ({}, "one.weight"),
    ],
)
def test_pairs_that_a_person_gave_lead_the_weights(
    reference: Path, given: dict[str, tuple[tuple[str, str], ...]], alpha: str
) -> None:
    order = LaunchOrder.decoded(LaunchOrder("x.h5", weights_from=str(reference), **given).encoded())
    start = order.same_start()
    assert start is not None
    layers, weights = side("one", "two")
    current = {weight.name: np.full((2, 2), 9, np.float32) for weight in weights}
    moved = start.weights(layers, weights, current)
    assert moved is not None
    assert np.array_equal(moved.values[alpha], np.zeros((2, 2)))


def test_a_pair_that_names_nothing_is_one_clear_error(reference: Path) -> None:
    layers, weights = side("one", "two")
    with open_dump(str(reference)) as source:
        start = SameStart(source, parameter_pairs=(("alpha.weight", "three.weight"),))
        with pytest.raises(UsageError, match=r"three\.weight"):
            start.weights(layers, weights, {})


def test_several_nets_keep_the_references_prefixes_whatever_comes_first(tmp_path: Path) -> None:
    writer = DumpWriter(str(tmp_path / "ref.h5"), Environment("torch", "2", "cpu"))
    for name, kind in (("", "Maker"), ("fc", "Linear"), ("Critic", "Critic")):
        writer.record(LayerRecord(name, kind, f"mine.{kind}", True, True))
    writer.add(EventKey(1, Phase.FORWARD, Role.BATCH, "x"), Values.of(np.ones(2, np.float32)))
    writer.close()
    with open_dump(str(tmp_path / "ref.h5")) as source:
        start = SameStart(source)
        assert start.prefix({}, "Critic") == "Critic"
        assert start.prefix({"Critic"}, "Maker") == ""
        assert start.prefix(set(), "Other") == ""
        # A layer of that class inside a net is no net.
        assert start.prefix({""}, "Linear") == "Linear"
    assert SameStart().prefix(set(), "Critic") == ""
