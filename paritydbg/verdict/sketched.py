"""Pairs of which a side is a sketch: what can still be compared, and where the sketch cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterable

from paritydbg.measure.sketch import RELATIVE_ERROR, Sketch, sketch
from paritydbg.model.comparison import Metrics, Verdict
from paritydbg.model.event import Event, Role
from paritydbg.model.pair import EventPair
from paritydbg.model.source import EventSource

# Why values that a judgement would look at are not looked at.
ONLY_SKETCH = "only a sketch is stored"
# How a reason begins where a sketch's error bar reaches a bound.
CANNOT_TELL = "the sketch cannot tell"
# A difference this many standard errors from a bound is on one side of it for certain.
_SURE = 3.0
_OF_PARAMETERS = (Role.PARAMETER, Role.BUFFER, Role.GRAD, Role.GRAD_APPLIED)


def has_values(pair: EventPair) -> bool:
    """Whether the values of both sides can be loaded."""
    return all(event.has_values for event in (*pair.reference, *pair.port))


def paired_sketches(
    pair: EventPair, reference: EventSource, port: EventSource
) -> tuple[Sketch, Sketch] | Verdict:
    """Both sides' sketches in one layout, or the verdict that stands where there are none.

    A sketch goes by positions in C order: a reshape leaves it as it is, any other change of layout
    can be made only on a side whose values are stored. That is SHAPE where the shapes do not fit, and
    UNTESTED where it cannot be done.
    """
    if len(pair.port) != 1:
        return Verdict.UNTESTED
    other = pair.port[0]
    if pair.transform.kind in ("identity", "reshape") and len(pair.reference) == 1:
        shape = pair.transform.shape if pair.transform.kind == "reshape" else pair.first.shape
        same_count = math.prod(shape) == math.prod(pair.first.shape)
        if shape != other.shape or not same_count:
            return Verdict.SHAPE
        return reference.load_sketch(pair.first), port.load_sketch(other)
    if all(event.has_values for event in pair.reference):
        try:
            (mine,) = pair.transform.apply([reference.load(event) for event in pair.reference])
        except ValueError:
            return Verdict.SHAPE
        if mine.shape != other.shape:
            return Verdict.SHAPE
        return sketch(mine), port.load_sketch(other)
    if other.has_values and pair.transform.kind in ("permute", "take"):
        back = pair.transform.inverse(pair.first.shape)
        try:
            (yours,) = back.apply([port.load(other)])
        except (ValueError, IndexError):
            return Verdict.SHAPE
        if yours.shape != pair.first.shape:
            return Verdict.SHAPE
        return reference.load_sketch(pair.first), sketch(yours)
    return Verdict.UNTESTED


def full_capture(event: Event) -> str:
    """What to record in full to know more: ``paritydbg run --layer 'fc' … without --sketch``."""
    key = event.key
    layer = key.name.rpartition(".")[0] if key.role in _OF_PARAMETERS else key.name
    if layer and key.role not in (Role.LOSS, Role.STATE):
        choice = f"--layer '{layer}'"
    else:
        choice = f"--role {key.role.value}"
    return f"record both sides without --sketch: paritydbg run {choice} --steps {key.step}"


def padding_hidden(event: Event) -> str:
    """Why what a recurrent layer is beside cannot be judged: its difference may all be padding."""
    return f"{CANNOT_TELL} padding from a sequence's own values; to know, {full_capture(event)}"


def untested(pair: EventPair) -> str:
    """Why a pair was not compared, and what would tell."""
    done = pair.transform.describe()
    return (
        f"{ONLY_SKETCH}, which cannot be compared after {done}; to know, {full_capture(pair.first)}"
    )


def unsure(metrics: Metrics, bounds: Iterable[float], event: Event) -> str:
    """Why a sketch cannot tell on which side of a bound a difference lies, ``""`` where it can.

    Args:
        bounds: values of ‖p - r‖ at which the verdict changes; they were estimated from sketches too.
    """
    if not metrics.error_l2:
        return ""
    for bound in bounds:
        error = math.hypot(metrics.error_l2, RELATIVE_ERROR * bound)
        if abs(metrics.difference_l2 - bound) <= _SURE * error:
            return (
                f"{CANNOT_TELL}: {metrics.difference_l2:.2e} ± {metrics.error_l2:.1e} "
                f"against a bound of {bound:.2e}; to know, {full_capture(event)}"
            )
    return ""
