"""A run's events gathered into calls of layers, and calls into passes through a net; one side only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.record import LayerRecord

LAYER_ROLES = (Role.INPUT, Role.OUTPUT, Role.GRAD_OUTPUT, Role.GRAD_INPUT)

# (step, rank): what is aligned with its like on the other side.
Unit = tuple[int, int]


@dataclass(frozen=True)
class Call:
    """One call of a layer within a step.

    Attributes:
        layer: its name in the events.
        number: of the call within the step.
        order: of its first event, which places it in the order of execution.
        events: all of its events by role, in order.
    """

    layer: str
    number: int
    order: int
    events: Mapping[Role, tuple[Event, ...]]

    def shapes(self, role: Role) -> tuple[tuple[int, ...], ...]:
        """The shapes of its tensors of that role."""
        return tuple(event.shape for event in self.events.get(role, ()))

    @property
    def all_events(self) -> tuple[Event, ...]:
        """Its events of every role."""
        return tuple(event for events in self.events.values() for event in events)


@dataclass(frozen=True)
class Pass:
    """One way through a net from outside, with all calls that it contains.

    Attributes:
        root: the net's name, None for calls outside of every net that was captured as a whole.
        calls: in order of execution, the net's own call included.
    """

    root: str | None
    calls: tuple[Call, ...]

    @property
    def batch_size(self) -> int | None:
        """The length of axis 0 of what the net was given (or gave), None where that is not known."""
        for call in self.calls:
            if call.layer == self.root:
                for role in (Role.INPUT, Role.OUTPUT):
                    for shape in call.shapes(role):
                        if shape:
                            return shape[0]
        return None


def passes_by_unit(
    events: Iterable[Event], layers: Sequence[LayerRecord]
) -> dict[Unit, tuple[Pass, ...]]:
    """The passes of every step, in order of execution."""
    roots = _roots(layers)
    calls: dict[Unit, dict[tuple[str, int], list[Event]]] = {}
    for event in events:
        key = event.key
        if key.role in LAYER_ROLES:
            unit = calls.setdefault((key.step, key.rank), {})
            unit.setdefault((key.name, key.call), []).append(event)
    return {
        unit: _passes([_call(*key, found) for key, found in by_key.items()], roots)
        for unit, by_key in calls.items()
    }


def _call(layer: str, number: int, events: list[Event]) -> Call:
    by_role: dict[Role, list[Event]] = {}
    for event in events:
        by_role.setdefault(event.key.role, []).append(event)
    forward = [event.order for event in events if event.key.phase is Phase.FORWARD]
    # Without forward events only the backward order is left: the last comes first.
    order = min(forward) if forward else -max(event.order for event in events)
    return Call(layer, number, order, {role: tuple(found) for role, found in by_role.items()})


def _roots(layers: Sequence[LayerRecord]) -> set[str]:
    """Layers that lie in no other."""
    names = {layer.name for layer in layers}
    return {name for name in names if not any(outer in names for outer in _ancestors(name))}


def _ancestors(name: str) -> list[str]:
    parts = name.split(".") if name else []
    return [".".join(parts[:length]) for length in range(len(parts))]


def _passes(calls: list[Call], roots: set[str]) -> tuple[Pass, ...]:
    calls.sort(key=lambda call: call.order)
    spans = _spans(calls, roots)
    inside: dict[int, list[Call]] = {}
    outside: dict[int, list[Call]] = {}
    current = 0
    for call in calls:
        while current < len(spans) and spans[current][1] < call.order:
            current += 1
        if current < len(spans) and spans[current][0] <= call.order:
            inside.setdefault(current, []).append(call)
        else:
            micro = call.all_events[0].key.micro
            outside.setdefault(micro, []).append(call)
    found = [Pass(spans[number][2], tuple(members)) for number, members in inside.items()]
    found += [Pass(None, tuple(members)) for members in outside.values()]
    return tuple(sorted(found, key=lambda one: one.calls[0].order))


def _spans(calls: Sequence[Call], roots: set[str]) -> list[tuple[int, int, str]]:
    """(first, last, net) of every outermost call of a net, as orders of forward events.

    A call whose inputs were not captured begins where the one before it ended.
    """
    spans: list[tuple[int, int, str]] = []
    end = -1
    for call in sorted((c for c in calls if c.layer in roots), key=_ends):
        last = _ends(call)
        if last <= end or last < 0:
            continue
        begin = call.order if Role.INPUT in call.events else end + 1
        if spans and begin <= spans[-1][0]:
            # It holds the net that ended before it.
            spans.pop()
        spans.append((begin, last, call.layer))
        end = last
    return spans


def _ends(call: Call) -> int:
    forward = [event.order for event in call.all_events if event.key.phase is Phase.FORWARD]
    return max(forward, default=-1)
