"""Changes of a tensor from sketches of what was before and after it."""

from __future__ import annotations

import numpy as np
import pytest

from paritydbg.measure.sketch import RELATIVE_ERROR, estimated_changes, sketch

DRAW = np.random.default_rng(0)
BEFORE = DRAW.normal(size=20_000)
CHANGE = 1e-4 * DRAW.normal(size=20_000)


def test_a_change_is_known_as_well_as_a_tensor_however_small_it_is() -> None:
    other = CHANGE + 1e-6 * DRAW.normal(size=CHANGE.size)
    before = sketch(BEFORE)
    metrics = estimated_changes((before, sketch(BEFORE + CHANGE)), (before, sketch(BEFORE + other)))
    truth = float(np.linalg.norm(other - CHANGE))
    assert metrics.difference_l2 == pytest.approx(truth, rel=5 * RELATIVE_ERROR)
    assert metrics.reference_l2 == pytest.approx(np.linalg.norm(CHANGE), rel=5 * RELATIVE_ERROR)
    assert metrics.error_l2 == pytest.approx(RELATIVE_ERROR * metrics.difference_l2)


def test_the_same_change_from_other_values_is_no_difference() -> None:
    here, there = BEFORE, BEFORE[::-1].copy()
    metrics = estimated_changes(
        (sketch(here), sketch(here + CHANGE)), (sketch(there), sketch(there + CHANGE))
    )
    assert metrics.relative_l2 < 1e-9


def test_sketches_of_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="elements"):
        estimated_changes((sketch(BEFORE), sketch(BEFORE[1:])), (sketch(BEFORE), sketch(BEFORE)))
