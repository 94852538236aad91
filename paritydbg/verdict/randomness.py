"""Tells dropout from a fault: two sides that draw other masks of one rate are both right."""

from __future__ import annotations

import numpy as np

from paritydbg.measure.masks import ONE_FACTOR, mask_of
from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Role
from paritydbg.model.source import EventSource
from paritydbg.verdict.compare import paired_values

# A drawn share lies this many standard deviations from its expectation at most; masks of
# whole channels vary more than single elements, so that the factor is the sharper test.
_DEVIATIONS = 6.0


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
            f"dropout: both sides keep {mine.kept:.0%} and scale by {mine.factor:.3g}, with other "
            "masks"
        )
    return ""
