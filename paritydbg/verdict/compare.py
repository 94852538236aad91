"""Every aligned pair of events to numbers; which of them is an origin is judged in `judge`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.measure.metrics import measure
from paritydbg.measure.noise import Noise
from paritydbg.measure.precision import tolerance
from paritydbg.measure.sketch import estimated
from paritydbg.model.comparison import Allowance, Comparison, Metrics, Verdict
from paritydbg.model.event import Event
from paritydbg.model.pair import Alignment, EventPair
from paritydbg.model.source import EventSource
from paritydbg.verdict.sketched import ONLY_SKETCH, has_values, paired_sketches, untested

Progress = Callable[[int, int], None]
Array = NDArray[Any]


def compare(
    alignment: Alignment,
    reference: EventSource,
    port: EventSource,
    noise: Noise,
    progress: Progress | None = None,
) -> tuple[Comparison, ...]:
    """Numbers for every aligned pair, in the alignment's order.

    The verdicts are those that one pair alone tells: MATCH (equal, or within its own rounding),
    SHAPE, DTYPE (a float on one side, whole numbers on the other, with other values), NONFINITE,
    UNTESTED (a sketch that cannot be brought into the other side's layout), and SUSPECT for the rest,
    which `judge` decides. Where a side is a sketch, the numbers are estimates with a standard error.

    Args:
        progress: told (pairs done, pairs in all).
    """
    found: list[Comparison] = []
    for done, pair in enumerate(alignment.events, 1):
        found.append(compare_pair(pair, reference, port, noise))
        if progress is not None:
            progress(done, len(alignment.events))
    return tuple(found)


def compare_pair(
    pair: EventPair,
    reference: EventSource,
    port: EventSource,
    noise: Noise,
    port_scale: float = 1.0,
) -> Comparison:
    """Numbers for one pair, the port's values divided by its scale first."""
    events = (*pair.reference, *pair.port)
    own = noise.own(tuple(event.dtype for event in events), 1.0)
    allowed = Allowance(0.0, own.basis, own.words)
    if port_scale == 1.0 and _same_bytes(pair):
        return Comparison(pair, Verdict.MATCH, _equal(pair.first, reference), allowed)
    if has_values(pair):
        left, right, problem = paired_values(pair, reference, port)
        if problem:
            return Comparison(pair, Verdict.SHAPE, score=float("inf"), reason=problem)
        if port_scale != 1.0:
            right = right.astype(np.float64) / port_scale
        metrics = measure(left, right, tolerance(*(event.dtype for event in events)))
    else:
        found = paired_sketches(pair, reference, port)
        if found is Verdict.SHAPE:
            return Comparison(pair, Verdict.SHAPE, score=float("inf"), reason=_shapes(pair))
        if isinstance(found, Verdict):
            return Comparison(pair, found, reason=untested(pair))
        metrics = estimated(found[0], found[1].scaled(1.0 / port_scale))
    allowed = Allowance(own.l2 * metrics.reference_l2, own.basis, own.words)
    score = _ratio(metrics.difference_l2, allowed.l2)
    if metrics.nonfinite_differs:
        return Comparison(pair, Verdict.NONFINITE, metrics, allowed, float("inf"))
    if metrics.difference_l2 <= allowed.l2:
        return Comparison(pair, Verdict.MATCH, metrics, allowed, score)
    if _is_float(pair.first) != _is_float(pair.port[0]):
        reason = f"dtype {pair.first.dtype} against {pair.port[0].dtype}"
        return Comparison(pair, Verdict.DTYPE, metrics, allowed, score, reason)
    return Comparison(pair, Verdict.SUSPECT, metrics, allowed, score)


def paired_values(
    pair: EventPair, reference: EventSource, port: EventSource
) -> tuple[Array, Array, str]:
    """Both sides' values in the port's layout, flattened and joined where a group has several; or why not.

    That a side has only a sketch is such a reason.
    """
    if not has_values(pair):
        return np.empty(0), np.empty(0), ONLY_SKETCH
    left = [reference.load(event) for event in pair.reference]
    right = [port.load(event) for event in pair.port]
    try:
        left = list(pair.transform.apply(left))
    except ValueError:
        return np.empty(0), np.empty(0), _shapes(pair)
    if [a.shape for a in left] != [b.shape for b in right]:
        return np.empty(0), np.empty(0), _shapes(pair)
    if len(left) == 1:
        return left[0], right[0], ""
    return (
        np.concatenate([a.reshape(-1) for a in left]),
        np.concatenate([b.reshape(-1) for b in right]),
        "",
    )


def _same_bytes(pair: EventPair) -> bool:
    return (
        pair.transform.kind == "identity"
        and len(pair.reference) == len(pair.port) == 1
        and pair.reference[0].digest == pair.port[0].digest
        and pair.reference[0].shape == pair.port[0].shape
    )


def _equal(event: Event, reference: EventSource) -> Metrics:
    """The metrics of a tensor against itself; NaN and Inf are the same on both sides."""
    if not event.has_values:
        same = reference.load_sketch(event)
        return estimated(same, same)
    values = reference.load(event)
    return measure(values, values, tolerance(event.dtype))


def _shapes(pair: EventPair) -> str:
    mine = " + ".join(str(event.shape) for event in pair.reference)
    yours = " + ".join(str(event.shape) for event in pair.port)
    done = pair.transform.describe()
    return f"shape {mine} against {yours}" + (f" after {done}" if done else "")


def _is_float(event: Event) -> bool:
    return event.dtype.startswith(("float", "bfloat", "complex"))


def _ratio(difference: float, allowed: float) -> float:
    if difference == 0.0:
        return 0.0
    return difference / allowed if allowed else float("inf")
