"""The numbers on two arrays, held against plain numpy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paritydbg.measure.masks import mask_of
from paritydbg.measure.metrics import difference_norm, measure, norm
from paritydbg.measure.noise import ModelledNoise
from paritydbg.measure.precision import Tolerance, tolerance, unit_roundoff

CLOSE = Tolerance(1e-3, 0.0)


@pytest.mark.parametrize("size", [1, 7, 32768, 100_003])
def test_sums_over_blocks_are_those_of_the_whole(size: int) -> None:
    source = np.random.default_rng(size)
    a = source.standard_normal(size).astype(np.float32)
    b = (a + 0.01 * source.standard_normal(size)).astype(np.float32)
    found = measure(a, b, CLOSE)
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert found.count == size
    assert found.difference_l2 == pytest.approx(np.linalg.norm(y - x), rel=1e-12)
    assert found.relative_l2 == pytest.approx(np.linalg.norm(y - x) / np.linalg.norm(x), rel=1e-12)
    assert found.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-12)
    assert found.ratio == pytest.approx(x @ y / (x @ x), rel=1e-12)
    worst = int(np.abs(y - x).argmax())
    assert found.max_index == (worst,)
    assert found.max_abs == np.abs(y - x)[worst]
    assert (found.reference_at, found.port_at) == (x[worst], y[worst])
    assert found.outside == pytest.approx(np.mean(np.abs(y - x) > 1e-3 * np.abs(x)))
    assert difference_norm(a, b) == pytest.approx(found.difference_l2, rel=1e-12)
    assert norm(a) == pytest.approx(found.reference_l2, rel=1e-12)


def test_the_worst_place_is_given_by_its_indices() -> None:
    a = np.zeros((3, 4, 5))
    b = a.copy()
    b[2, 1, 3] = 7.0
    assert measure(a, b, CLOSE).max_index == (2, 1, 3)


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    a = np.array([1.0, np.nan, np.inf, np.inf, 2.0, np.nan])
    b = np.array([1.0, np.nan, np.inf, -np.inf, np.nan, 3.0])
    found = measure(a, b, CLOSE)
    assert (found.nan_reference, found.nan_port) == (2, 2)
    assert (found.inf_reference, found.inf_port) == (2, 2)
    assert found.nonfinite_differs == 3
    assert found.difference_l2 == 0.0
    assert found.reference_l2 == 1.0


def test_zero_against_something_is_infinitely_far() -> None:
    assert measure(np.zeros(3), np.ones(3), CLOSE).relative_l2 == math.inf
    assert measure(np.zeros(3), np.zeros(3), CLOSE).relative_l2 == 0.0


@pytest.mark.parametrize(
    "array", [np.array([True, False]), np.array(3), np.zeros((0, 3)), np.array([1 + 2j, 3j])]
)
def test_flags_scalars_empty_and_complex_arrays_are_measured(array: np.ndarray) -> None:
    found = measure(array, array.copy(), CLOSE)
    assert found.difference_l2 == 0.0
    assert found.nonfinite_differs == 0


def test_a_complex_difference_counts_both_parts() -> None:
    found = measure(np.array([0j]), np.array([3 + 4j]), CLOSE)
    assert found.difference_l2 == 5.0


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="shapes differ"):
        measure(np.zeros(3), np.zeros(4), CLOSE)


def test_the_coarsest_dtype_decides_what_is_allowed() -> None:
    assert unit_roundoff("float32", "bfloat16") == 2.0**-8
    assert unit_roundoff("int64", "bool") == 0.0
    assert tolerance("float32", "float16").relative == 1e-3
    noise = ModelledNoise()
    assert noise.own(("float16",), 1.0).l2 > 100 * noise.own(("float32",), 1.0).l2
    assert noise.own(("int32",), 1.0).l2 == 0.0
    assert "float16" in noise.own(("float32", "float16"), 1.0).words


def test_a_dropout_mask_is_recognised_and_other_zeros_are_not() -> None:
    source = np.random.default_rng(0).standard_normal(1000)
    kept = np.random.default_rng(1).random(1000) < 0.75
    found = mask_of(source * kept / 0.75, source)
    assert found is not None
    assert found.factor == pytest.approx(4 / 3)
    assert found.kept == kept.mean()
    assert mask_of(np.maximum(source, 0), source) is None
    assert mask_of(source * 1.5, source) is None
    assert mask_of(source * kept * np.linspace(1, 2, 1000), source) is None
