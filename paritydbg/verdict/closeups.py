"""Closer looks at the tensors that decided a finding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.model.closeup import Closeup, Element, Histogram
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.source import EventSource

_BINS = 48
_WORST = 8
# Histograms of larger tensors count evenly spaced elements, about so many.
_SAMPLED = 1 << 20


def closeup(comparison: Comparison, reference: EventSource, port: EventSource) -> Closeup | None:
    """The two tensors of a comparison in summary.

    None where there are no values to look at: shapes differ, a side is a sketch, nothing is finite.
    """
    pair = comparison.pair
    stored = all(event.has_values for event in (*pair.reference, *pair.port))
    if not stored or comparison.metrics is None or comparison.verdict is Verdict.SHAPE:
        return None
    left = pair.transform.apply([reference.load(event) for event in pair.reference])
    right = [port.load(event) for event in pair.port]
    if [one.shape for one in left] != [one.shape for one in right]:
        return None
    numbers = all(one.dtype.kind in "biuf" for one in (*left, *right))
    if not numbers or not any(one.size for one in right):
        return None
    # Of a group, the tensor that differs most.
    pairs = [(mine, yours) for mine, yours in zip(left, right, strict=True) if mine.size]
    mine, yours = max(pairs, key=lambda both: _furthest(*both))
    return _looked_at(mine, yours)


def _looked_at(mine: NDArray[Any], yours: NDArray[Any]) -> Closeup | None:
    stride = max(1, mine.size // _SAMPLED)
    a, b = (one.reshape(-1)[::stride].astype(np.float64) for one in (mine, yours))
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if not a.size:
        return None
    low, high = float(min(a.min(), b.min())), float(max(a.max(), b.max()))
    difference = b - a
    return Closeup(
        reference=_histogram(a, low, high),
        port=_histogram(b, low, high),
        difference=_histogram(difference, float(difference.min()), float(difference.max())),
        worst=_worst(mine, yours),
        looked_at=int(a.size),
        count=int(mine.size),
    )


def _histogram(values: NDArray[np.float64], low: float, high: float) -> Histogram:
    if not np.isfinite(high - low) or high <= low:
        return Histogram(low, high, (int(values.size),))
    # Not np.histogram's own edges: a range of a few units in the last place has no 48 bins.
    place = np.clip(((values - low) / (high - low) * _BINS).astype(np.int64), 0, _BINS - 1)
    return Histogram(low, high, tuple(np.bincount(place, minlength=_BINS).tolist()))


def _worst(mine: NDArray[Any], yours: NDArray[Any]) -> tuple[Element, ...]:
    """The elements that part most, over the whole tensor, found block by block."""
    a, b = mine.reshape(-1), yours.reshape(-1)
    found: list[tuple[float, int]] = []
    for start in range(0, a.size, _SAMPLED):
        block = slice(start, start + _SAMPLED)
        apart = _apart(a[block], b[block])
        most = np.argsort(-apart, kind="stable")[:_WORST]
        found += [(float(apart[at]), start + int(at)) for at in most if apart[at] > 0]
    found.sort(key=lambda one: (-one[0], one[1]))
    return tuple(
        Element(tuple(int(i) for i in np.unravel_index(at, mine.shape)), float(a[at]), float(b[at]))
        for _, at in found[:_WORST]
    )


def _apart(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """|b - a| in float64; what is finite on one side alone parts most, what is nan on both not at all."""
    with np.errstate(invalid="ignore"):
        wide, other = a.astype(np.float64), b.astype(np.float64)
        apart: NDArray[np.float64] = np.abs(other - wide)
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    apart[same] = 0.0
    apart[~np.isfinite(apart)] = np.inf
    return apart


def _furthest(mine: NDArray[Any], yours: NDArray[Any]) -> float:
    flat = _apart(mine.reshape(-1)[:_SAMPLED], yours.reshape(-1)[:_SAMPLED])
    return float(flat.max(initial=0.0))
