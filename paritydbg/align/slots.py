"""Slots of one call against those of the other: which tensor of a tuple or dict goes with which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from paritydbg.model.event import Event
from paritydbg.model.transform import IDENTITY, Transform
from paritydbg.weights.sequence import match_sequences
from paritydbg.weights.shapes import by_shape, plain, size

Shape = tuple[int, ...]


def match_slots(reference: Sequence[Event], port: Sequence[Event]) -> list[tuple[Event, Event]]:
    """Events of one role of two calls, paired.

    Equal slots go together unless shapes say that two arguments merely changed places; the rest
    goes by order, shapes first. What finds no partner is left out.
    """
    by_slot = {event.key.slot: event for event in port}
    pairs = [(event, by_slot[event.key.slot]) for event in reference if event.key.slot in by_slot]
    if not all(plain(a.shape) == plain(b.shape) for a, b in pairs):
        by_shapes = _only_by_shape(reference, port)
        if by_shapes:
            return by_shapes
    left = [event for event in reference if event.key.slot not in by_slot]
    slots = {event.key.slot for event in reference}
    right = [event for event in port if event.key.slot not in slots]
    if len(left) == len(right):
        return pairs + list(zip(left, right, strict=True))
    chain = match_sequences(left, right, lambda a, b: float(plain(a.shape) == plain(b.shape)))
    return pairs + [(left[i], right[j]) for i, j in chain]


def layout(reference: Shape, port: Shape) -> Transform:
    """The change of layout between two activations, identity where shapes do not tell one surely.

    Channels last against first, axes of length one, and axes merged or cut (a batch flattened
    before a dense layer) are layouts; anything else stays a difference of shapes.
    """
    if reference == port:
        return IDENTITY
    found = by_shape(reference, port)
    if found is not None:
        return found
    if size(reference) == size(port) > 0 and (_merged(reference, port) or _merged(port, reference)):
        return Transform("reshape", shape=port)
    return IDENTITY


def _only_by_shape(reference: Sequence[Event], port: Sequence[Event]) -> list[tuple[Event, Event]]:
    """All events paired by shape, where every shape occurs once on each side; else nothing."""
    counts = Counter(plain(e.shape) for e in reference), Counter(plain(e.shape) for e in port)
    if counts[0] != counts[1] or any(count > 1 for count in counts[0].values()):
        return []
    by_shapes = {plain(event.shape): event for event in port}
    return [(event, by_shapes[plain(event.shape)]) for event in reference]


def _merged(longer: Shape, shorter: Shape) -> bool:
    """Whether the second shape is the first with neighbouring axes merged."""
    axes = iter(longer)
    for wanted in shorter:
        product = 1
        while product < wanted:
            length = next(axes, None)
            if length is None:
                return False
            product *= length
        if product != wanted:
            return False
    return all(length == 1 for length in axes)
