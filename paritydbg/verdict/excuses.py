"""Looks again at a suspected origin: kinks crossed by rounding, padding, badly conditioned layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.measure.precision import unit_roundoff
from paritydbg.measure.sketch import Sketch
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.source import EventSource
from paritydbg.verdict.calls import CallNode
from paritydbg.verdict.compare import paired_values
from paritydbg.verdict.sketched import has_values, paired_sketches

Array = NDArray[Any]

# A kink crossed by rounding touches few elements; a wrong derivative touches many.
_FEW = 1e-3
_AT_LEAST = 3
# So many elements seldom share a bucket of a sketch.
_MOST_BUCKETS = 48
# An element counts as flipped where one side has next to nothing of what the other has.
_NOTHING = 1e-3


# Where padding may differ without harm; an output that differs there is a length ignored.
# Elements that did not flip agree to so many roundings, which shows in 16 bits only.
_ROUNDINGS = 8.0
BESIDE = (Role.INPUT, Role.GRAD_OUTPUT, Role.GRAD_INPUT)


def kink_crossed(comparison: Comparison, reference: EventSource, port: EventSource) -> str:
    """Why a gradient's difference is a mask that rounding flipped, ``""`` if it is not.

    At a ReLU's zero, a maximum's tie or a clamp's bound the last bit decides whether an element's
    gradient is passed on or not: a few elements differ by all of their value, the rest not at all.
    """
    if comparison.pair.first.key.phase is not Phase.BACKWARD or _lost(comparison):
        return ""
    if not has_values(comparison.pair):
        return _few_differ(comparison, reference, port)
    left, right, problem = paired_values(comparison.pair, reference, port)
    if problem or left.size < 32:
        return ""
    a, b = left.astype(np.float64).reshape(-1), right.astype(np.float64).reshape(-1)
    difference = np.abs(b - a)
    # What is not flipped must agree: the few worst elements carry the whole difference.
    most = max(_AT_LEAST, int(_FEW * a.size))
    worst = np.argpartition(difference, -most)[-most:]
    rest = float(np.sum(difference**2) - np.sum(difference[worst] ** 2))
    if rest > _agreeing(comparison) * float(a @ a):
        return ""
    large = worst[difference[worst] > 1e-2 * difference[worst].max()]
    smaller = np.minimum(np.abs(a[large]), np.abs(b[large]))
    larger = np.maximum(np.abs(a[large]), np.abs(b[large]))
    if large.size and np.all(smaller <= _NOTHING * larger):
        return f"{large.size} of {a.size} elements flipped between passed on and not: a kink"
    return ""


def _few_differ(comparison: Comparison, reference: EventSource, port: EventSource) -> str:
    """The same from sketches: a few elements carry the whole difference where few buckets do."""
    found = paired_sketches(comparison.pair, reference, port)
    if isinstance(found, Verdict):
        return ""
    left, right = found
    gap = np.sort(np.abs(right.buckets - left.buckets))[::-1]
    most = min(_MOST_BUCKETS, max(_AT_LEAST, int(_FEW * left.count)))
    if float(np.sum(gap[most:] ** 2)) > _agreeing(comparison) * left.l2**2:
        return ""
    flipped = int(np.count_nonzero(gap > 1e-2 * gap[0]))
    return (
        f"the whole difference lies in about {flipped} of {left.count} elements (told from the "
        "sketch): a kink"
    )


def _agreeing(comparison: Comparison) -> float:
    """How far elements that did not flip may lie apart: ‖p - r‖² / ‖r‖²."""
    events = (*comparison.pair.reference, *comparison.pair.port)
    return max(1e-8, (_ROUNDINGS * unit_roundoff(*(event.dtype for event in events))) ** 2)


def _lost(comparison: Comparison) -> bool:
    metrics = comparison.metrics
    return metrics is None or metrics.nonfinite_differs > 0


def padding_apart(
    comparison: Comparison, reference: EventSource, port: EventSource
) -> float | None:
    """The relative difference outside of padding, None where padding does not explain the rest.

    A packed batch of sequences has nothing behind a sequence's end, where a padded one has whatever
    the padding leads to; a recurrent layer that knows the lengths reads neither. Rows (all but the
    last axis) that the reference left zero are taken for padding.
    """
    if comparison.pair.first.key.role not in BESIDE or _lost(comparison):
        return None
    left, right, problem = paired_values(comparison.pair, reference, port)
    if problem or left.ndim < 2 or left.dtype.kind != "f":
        return None
    empty = ~np.any(left, axis=-1)
    if not empty.any() or empty.all():
        return None
    a, b = left[~empty].astype(np.float64), right[~empty].astype(np.float64)
    return float(np.linalg.norm(b - a) / np.linalg.norm(a))


def badly_conditioned(
    comparison: Comparison, call: CallNode, pair_of: dict[Event, Comparison], reference: EventSource
) -> float:
    """By how much a normalising layer magnifies relative differences of its input, 1 at least.

    Subtracting a mean leaves x - mean: relative errors grow by rms(x) / std(x), along the channel
    axis or the last one, whichever is larger.
    """
    if comparison.pair.first.key.role is not Role.OUTPUT:
        return 1.0
    most = 1.0
    for event in call.inputs:
        found = pair_of.get(event)
        if found is None or event.shape != comparison.pair.first.shape or not event.shape:
            continue
        if not event.has_values:
            most = max(most, _over_all(reference.load_sketch(event)))
            continue
        x = reference.load(event).astype(np.float64)
        if not np.isfinite(x).all():
            continue
        for axes in ((-1,), tuple(axis for axis in range(x.ndim) if axis != 1)):
            if not axes:
                continue
            deviation = float(np.sqrt(np.mean(x.var(axis=axes))))
            size = float(np.sqrt(np.mean(x**2)))
            if deviation:
                most = max(most, size / deviation)
    return most


def _over_all(kept: Sketch) -> float:
    """rms(x) / std(x) over all elements: what a sketch tells of it."""
    if not kept.count or kept.lost:
        return 1.0
    square = kept.l2**2 / kept.count
    variance = square - kept.mean**2
    # Below this the subtraction above is all rounding.
    return float(np.sqrt(square / variance)) if variance > 1e-12 * square else 1.0
