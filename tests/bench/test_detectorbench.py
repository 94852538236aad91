"""Fixed rules beside the product: where each fires, what it names, how it is counted."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from paritydbg.model.event import EventKey, Phase, Role

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from casebench.cases import find_cases
from casebench.detectors import (
    RULES,
    Rule,
    beyond_allclose,
    beyond_cosine,
    beyond_relative_l2,
    place_of,
)
from detectorbench import PRODUCT, Named, run, table

ONES = np.ones(100)


@pytest.mark.parametrize(
    ("rule", "below", "above"),
    [
        (beyond_allclose, 1.0009, 1.0012),
        (beyond_relative_l2, 1.00009, 1.00011),
        (beyond_cosine, 1.9, 2.1),
    ],
)
def test_a_rule_fires_above_its_threshold_and_not_below(
    rule: Rule, below: float, above: float
) -> None:
    assert not rule(ONES, ONES * below)
    assert rule(ONES, ONES * above)


@pytest.mark.parametrize("rule", RULES.values())
def test_what_is_not_finite_counts_where_it_is_on_one_side_alone(rule: Rule) -> None:
    lost = ONES.copy()
    lost[3] = np.nan
    assert not rule(lost, lost.copy())
    assert rule(ONES, lost)


def test_cosine_needs_a_large_error_too_until_it_is_very_low() -> None:
    tiny = 1e-6 * np.array([1.0, 0.0])
    assert not beyond_cosine(tiny, 1e-6 * np.array([1.0, 0.3]))
    assert beyond_cosine(tiny, 1e-6 * np.array([0.0, 1.0]))


def test_places_are_those_of_the_case_protocol() -> None:
    forward, update = Phase.FORWARD, Phase.UPDATE
    assert place_of(EventKey(1, forward, Role.BATCH, "x")) == "inputs:x"
    assert place_of(EventKey(1, forward, Role.INPUT, "fc")) == "before fc"
    assert place_of(EventKey(1, forward, Role.OUTPUT, "fc", call=2)) == "fc#2"
    assert place_of(EventKey(1, Phase.BACKWARD, Role.GRAD_OUTPUT, "fc")) == "after fc"
    assert place_of(EventKey(2, update, Role.PARAMETER, "fc.weight")) == "step2:fc.weight"
    assert place_of(EventKey(1, forward, Role.PARAMETER, "fc.weight")) == "fc.weight"


def test_a_case_is_recorded_once_and_asked_of_every_detector() -> None:
    (case,) = find_cases([ROOT / "tests" / "cases"], ("f02_",))
    named = run(case, "faulty", 300.0)
    assert not named.error
    assert named.places is not None
    assert set(named.places) == {*RULES, PRODUCT}
    assert named.right(PRODUCT)


def test_counts_take_silence_for_right_where_nothing_is_wrong_and_no_answer_for_wrong() -> None:
    names = (*RULES, PRODUCT)
    innocent = Named("a", "faulty", (), dict.fromkeys(names, ""))
    broken = Named("b", "faulty", ("fc",), None, "killed")
    alarmed = Named("c", "clean", (), {**dict.fromkeys(names, ""), PRODUCT: "fc"})
    lines = table([innocent, broken, alarmed]).splitlines()
    assert "of 2" in lines[0]
    assert lines[-1] == f"| {PRODUCT} | 1 | 1 |"
    assert lines[2].endswith("| 1 | 0 |")
