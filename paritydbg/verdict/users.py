"""Who used a tensor: layers tell by their inputs, the glue between them only by values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.model.event import Event, Role
from paritydbg.model.source import EventSource
from paritydbg.verdict.calls import CallNode
from paritydbg.verdict.flow import Flow

# Looked at for one tensor: a few hundred events of a usual size.
_MOST_BYTES = 1 << 28
# A sum that glue made agrees with the sum of the two values to float32 rounding.
_ROUNDING = 1e-5


def only_user(
    event: Event, flow: Flow, reference: EventSource, agrees: Callable[[Event], bool]
) -> Event | None:
    """The input of the one layer that used a call's output, innermost; None if there are several.

    The gradient of a tensor is seen where it was made and where it was used: if just one layer used
    it, that layer's backward made it.

    Args:
        event: the gradient of the output.
        agrees: whether an event was compared and is the same on both sides.
    """
    call = flow.call(event)
    if call is None:
        return None
    made = [tensor for tensor in call.outputs if tensor.key.slot == event.key.slot]
    digests = {tensor.digest for tensor in made}
    users = [
        tensor
        for other in flow.calls.values()
        if other.moment == call.moment and other is not call
        for tensor in other.inputs
        if tensor.digest in digests and tensor.order > call.closed
    ]
    names = sorted((tensor.key.name for tensor in users), key=len)
    if not names or any(not _within(name, names[0]) for name in names):
        return None
    if any(_used_by_glue(tensor, call, flow, reference) for tensor in made):
        return None
    user = max(users, key=lambda tensor: len(tensor.key.name))
    theirs = flow.call(user)
    sent = theirs.grad_inputs if theirs is not None else []
    if any(gradient.key.slot == user.key.slot and agrees(gradient) for gradient in sent):
        # What the layer sends back is right in the port, and does not arrive: glue lies between.
        return None
    return user


def _within(name: str, outer: str) -> bool:
    return name == outer or not outer or name.startswith(f"{outer}.")


def _used_by_glue(tensor: Event, call: CallNode, flow: Flow, reference: EventSource) -> bool:
    """Whether a later tensor is a sum or a concatenation with this one in it."""
    later = [
        event
        for other in flow.calls.values()
        if other.moment == call.moment
        for event in (*other.inputs, *other.outputs)
        if event.order > tensor.order and event.digest != tensor.digest
    ]
    if not tensor.dtype.startswith(("float", "bfloat")) or 0 in tensor.shape:
        return False
    if tensor.has_values:
        later = [event for event in later if event.has_values]
    values = _kept(tensor, tensor, reference)
    budget = _MOST_BYTES
    for event in sorted(later, key=lambda event: event.order):
        sum_of, joined = event.shape == tensor.shape, _one_axis_longer(event, tensor)
        if not sum_of and joined is None:
            continue
        budget -= event.nbytes
        if budget < 0:
            return False
        if joined is not None:
            # A concatenation shows in values alone.
            if tensor.has_values and _holds(reference.load(event), values, joined):
                return True
            continue
        if _is_sum(event, tensor, later, values, reference):
            return True
    return False


def _one_axis_longer(event: Event, tensor: Event) -> int | None:
    """The axis along which alone the event is longer, None without one."""
    if len(event.shape) != len(tensor.shape):
        return None
    axes = [i for i, (a, b) in enumerate(zip(event.shape, tensor.shape, strict=True)) if a != b]
    return axes[0] if len(axes) == 1 and event.shape[axes[0]] > tensor.shape[axes[0]] else None


def _holds(whole: NDArray[Any], part: NDArray[Any], axis: int) -> bool:
    length = part.shape[axis]
    last = whole.shape[axis] - length
    starts = {0, last, *range(0, last, max(1, length))}
    return any(
        np.array_equal(np.take(whole, range(start, start + length), axis), part)
        for start in sorted(starts)
    )


def _is_sum(
    event: Event,
    tensor: Event,
    later: list[Event],
    values: NDArray[Any],
    reference: EventSource,
) -> bool:
    rest = _kept(event, tensor, reference).astype(np.float64) - values
    size = float(np.linalg.norm(rest))
    if not np.isfinite(size) or size == 0.0:
        return False
    others = [
        other
        for other in later
        if other.key.role is Role.OUTPUT
        and other.shape == tensor.shape
        and other.order < event.order
        and other.digest != event.digest
    ]
    # The nearest are the likeliest: a residual adds what was made last.
    for other in sorted(others, key=lambda other: -other.order)[:8]:
        if float(np.linalg.norm(rest - _kept(other, tensor, reference))) <= _ROUNDING * size:
            return True
    return False


def _kept(event: Event, tensor: Event, reference: EventSource) -> NDArray[Any]:
    """An event's values or, where the tensor in question is a sketch, its buckets: they add up alike."""
    if tensor.has_values:
        return reference.load(event)
    return reference.load_sketch(event).buckets
