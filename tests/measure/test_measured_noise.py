"""Measured noise: it widens what is allowed where the reference itself moves more, and only there."""

from __future__ import annotations

from paritydbg.measure.noise import MeasuredNoise, ModelledNoise
from paritydbg.model.event import EventKey, Phase, Role
from paritydbg.model.record import NoiseRecord

KEY = EventKey(1, Phase.FORWARD, Role.OUTPUT, "fc")


def record(spread: float, exact: float | None = None) -> NoiseRecord:
    return NoiseRecord(1, "forward", "output", "fc", 0, "", 0, 0, spread, exact, 3)


def test_a_tensor_that_moves_much_is_allowed_much() -> None:
    own = MeasuredNoise([record(0.5)]).own(("float32",), 1.0, KEY, 1.0)
    assert own.basis == "measured"
    assert own.l2 == 2.5
    assert "3 runs" in own.words


def test_a_tensor_that_hardly_moves_keeps_the_models_allowance_for_its_own_size() -> None:
    own = MeasuredNoise([record(1e-12)]).own(("float32",), 1e6, KEY, 1.0)
    assert own == ModelledNoise().own(("float32",), 1.0)
    assert own.basis == "modelled"


def test_the_error_against_float64_counts_where_it_is_larger() -> None:
    own = MeasuredNoise([record(0.1, exact=0.2)]).own(("float32",), 1.0, KEY, 1.0)
    assert own.l2 == 1.0
    assert "float64" in own.words


def test_a_tensor_that_was_not_measured_is_modelled() -> None:
    other = EventKey(2, Phase.FORWARD, Role.OUTPUT, "fc")
    noise = MeasuredNoise([record(0.5)])
    assert noise.own(("float32",), 3.0, other, 1.0) == ModelledNoise().own(("float32",), 3.0)


def test_what_is_allowed_says_the_same_in_words() -> None:
    own = MeasuredNoise([record(0.5)]).own(("float32",), 1.0, KEY, 1.0).allowing(4.0)
    assert own.l2 == 10.0
    assert own.words.startswith("20 times the spread")
    assert ModelledNoise().own(("float32",), 1.0).allowing(4.0).words.startswith("32 float32")
