"""Tells dropout from a fault: two sides that draw other masks of one rate are both right."""

from __future__ import annotations

import numpy as np

from paritydbg.measure.masks import ONE_FACTOR, mask_of
from paritydbg.measure.precision import no_finer
from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Role
from paritydbg.model.source import EventSource
from paritydbg.verdict.compare import paired_values

# A drawn share lies this many standard deviations from its expectation at most; masks of
# whole channels vary more than single elements, so that the factor is the sharper test.
_DEVIATIONS = 6.0


# How a reason begins that tells of two draws of one dropout.
DRAWN = "dropout:"
# x·dx = y·dy holds for any mask to a few roundings.
_SAME_MASK = 1e-4


def through_own_mask(
    gradient: Comparison,
    value: Comparison,
    masked: Comparison,
    arrived: Comparison,
    reference: EventSource,
    port: EventSource,
) -> str:
    """Why a replayed gradient that differs went through the port's own mask, ``""`` if it did not.

    With y = m·x, the gradient is dx = m·dy for whatever m was drawn, so that x·dx = y·dy element by
    element. A replay gives both sides the reference's x and dy.

    Args:
        gradient, value: dx and x.
        masked, arrived: y, which two masks of one rate made, and dy.
    """
    arrays = []
    for one in (gradient, value, masked, arrived):
        left, right, problem = paired_values(one.pair, reference, port)
        if problem:
            return ""
        arrays.append((left.astype(np.float64), right.astype(np.float64)))
    if len({side.shape for both in arrays for side in both}) != 1:
        return ""
    x, dy = arrays[1][0], arrays[3][0]
    for side in (0, 1):
        dx, y = arrays[0][side], arrays[2][side]
        left, right = (x * dx).reshape(-1), (y * dy).reshape(-1)
        within = no_finer(_SAME_MASK, *(event.dtype for event in gradient.pair.port))
        with np.errstate(invalid="ignore"):
            # Not "greater": NaN is no agreement.
            if not np.linalg.norm(left - right) <= within * np.linalg.norm(right):
                return ""
    return f"{DRAWN} the gradient goes through each side's own mask"


def drawn_alike(
    comparison: Comparison,
    sources: tuple[Comparison, ...],
    reference: EventSource,
    port: EventSource,
) -> str:
    """Why a difference is another draw of one dropout, ``""`` if it is not.

    Each side must be some source with elements dropped and the others scaled by one factor, the same
    on both sides, and keep about one over the factor (Srivastava et al. 2014, inverted).
    """
    if comparison.pair.first.key.role not in (Role.OUTPUT, Role.INPUT):
        return ""
    left, right, problem = paired_values(comparison.pair, reference, port)
    if problem or left.dtype.kind != "f":
        return ""
    for source in sources:
        if source.pair.first.shape != comparison.pair.first.shape:
            continue
        # Each side by its own source: in later steps those differ already.
        before = paired_values(source.pair, reference, port)
        if before[2] or before[0].shape != left.shape:
            continue
        mine, yours = mask_of(left, before[0]), mask_of(right, before[1])
        if mine is None or yours is None:
            continue
        values = before[0]
        if abs(mine.factor - yours.factor) > ONE_FACTOR * mine.factor:
            return ""
        spread = np.sqrt(2 * mine.kept * (1 - mine.kept) / values.size)
        # A whole channel or row may be one draw: its length is taken as a bound.
        spread *= np.sqrt(max(1.0, values.size / max(1, values.shape[0])))
        expected = 1.0 / mine.factor
        if max(abs(m.kept - expected) for m in (mine, yours)) > _DEVIATIONS * spread:
            return ""
        return (
            f"{DRAWN} both sides keep {mine.kept:.0%} and scale by {mine.factor:.3g}, with other "
            "masks"
        )
    return ""
