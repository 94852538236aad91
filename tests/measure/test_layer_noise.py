"""Rounding of a lone layer: tight where terms add up, wide where they cancel."""

from __future__ import annotations

import numpy as np

from paritydbg.measure.layer_noise import gradient_rounding, rounding

RANDOM = np.random.default_rng(0)


def test_shorter_types_round_more() -> None:
    assert rounding(["float32"]) < rounding(["float32", "float16"]) < rounding(["bfloat16"])


def test_a_gradient_that_cancels_may_lie_far_and_another_may_not() -> None:
    x = RANDOM.normal(size=(1000, 8)).astype(np.float32)
    g = RANDOM.normal(size=(1000, 4)).astype(np.float32)
    weight = g.T @ x
    assert gradient_rounding(weight, [g], [x]) == 1e-4
    # Behind a softmax, rows of the gradient sum to zero but for rounding.
    centred = g - g.mean(0)
    bias = centred.sum(0)
    exact = centred.astype(np.float64).sum(0)
    far = float(np.linalg.norm(bias - exact) / np.linalg.norm(bias))
    assert far > 1e-4
    assert gradient_rounding(bias, [centred], [x]) > far
