"""Events that bear a name of their own joined by it: batch, loss, state, parameters and gradients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paritydbg.align.passes import CUT
from paritydbg.align.slots import layout
from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.pair import EventPair, ParameterPair
from paritydbg.weights.shapes import plain

PARAMETER_ROLES = (Role.PARAMETER, Role.GRAD, Role.GRAD_APPLIED, Role.BUFFER)
NAMED_ROLES = (Role.BATCH, Role.LOSS, Role.STATE)

# Where an event lies apart from its name.
_Spot = tuple[int, int, int, Phase, Role]


@dataclass(frozen=True)
class Joined:
    """Pairs of events, and why the events of cut batches have none."""

    pairs: tuple[EventPair, ...]
    reasons: Mapping[Event, str]


def join_named(reference: Sequence[Event], port: Sequence[Event]) -> Joined:
    """Batch, loss and state entries of the same step: by name, then by shape and order."""
    mine, yours = _by_spot(reference, NAMED_ROLES), _by_spot(port, NAMED_ROLES)
    micros = _micros(reference), _micros(port)
    found: list[EventPair] = []
    reasons: dict[Event, str] = {}
    for spot, events in mine.items():
        step, rank = spot[0], spot[1]
        others = yours.get(spot, [])
        if micros[0].get((step, rank), 0) != micros[1].get((step, rank), 0) and (
            spot[4] is not Role.STATE
        ):
            # A batch that is given whole is the same however it is cut afterwards.
            shapes = {(other.key.name, other.shape) for other in others}
            whole = [
                e for e in events if e.key.role is Role.BATCH and (e.key.name, e.shape) in shapes
            ]
            found += _joined(whole, others)
            reasons.update(dict.fromkeys((*events, *others), CUT))
            continue
        found += _joined(events, others)
    return Joined(tuple(found), reasons)


def join_parameters(
    reference: Sequence[Event], port: Sequence[Event], pairs: Iterable[ParameterPair]
) -> Joined:
    """Values and gradients of parameters that stand for each other, through their transform."""
    mine, yours = _by_name(reference), _by_name(port)
    cut = {
        step
        for step, count in _micros(reference).items()
        if count != _micros(port).get(step, count)
    }
    found: list[EventPair] = []
    reasons: dict[Event, str] = {}
    for pair in pairs:
        for spot in mine.get(pair.reference[0], {}):
            left = [mine.get(name, {}).get(spot) for name in pair.reference]
            right = [yours.get(name, {}).get(spot) for name in pair.port]
            here = tuple(event for event in left if event is not None)
            there = tuple(event for event in right if event is not None)
            if spot[4] is Role.GRAD and spot[:2] in cut:
                reasons.update(dict.fromkeys((*here, *there), CUT))
            elif len(here) == len(left) and len(there) == len(right):
                found.append(EventPair(here, there, pair.transform, pair.how, pair.confidence))
    return Joined(tuple(found), reasons)


def _joined(left: Sequence[Event], right: Sequence[Event]) -> list[EventPair]:
    by_name = {event.key.name: event for event in right}
    pairs = [(e, by_name[e.key.name], 1.0) for e in left if e.key.name in by_name]
    names = {event.key.name for event in left}
    rest = [event for event in left if event.key.name not in by_name]
    free = [event for event in right if event.key.name not in names]
    for event in rest:
        # A script that names its entries and a launcher that numbers them: shape, then order.
        fitting = [other for other in free if plain(other.shape) == plain(event.shape)]
        if fitting and (len(fitting) == 1 or len(rest) == len(free)):
            pairs.append((event, fitting[0], 0.8))
            free.remove(fitting[0])
    return [
        EventPair((a,), (b,), layout(a.shape, b.shape), "name" if sure == 1.0 else "sequence", sure)
        for a, b, sure in pairs
    ]


def _by_spot(events: Iterable[Event], roles: Sequence[Role]) -> dict[_Spot, list[Event]]:
    found: dict[_Spot, list[Event]] = {}
    for event in events:
        if event.key.role in roles:
            found.setdefault(_spot(event), []).append(event)
    return found


def _by_name(events: Iterable[Event]) -> dict[str, dict[_Spot, Event]]:
    found: dict[str, dict[_Spot, Event]] = {}
    for event in events:
        if event.key.role in PARAMETER_ROLES:
            found.setdefault(event.key.name, {})[_spot(event)] = event
    return found


def _spot(event: Event) -> _Spot:
    key = event.key
    # Only what a micro-batch makes anew belongs to one; an update belongs to its step.
    micro = key.micro if key.role in (Role.BATCH, Role.LOSS, Role.GRAD) else 0
    return key.step, key.rank, micro, key.phase, key.role


def _micros(events: Iterable[Event]) -> dict[tuple[int, int], int]:
    """(step, rank) -> the number of its last micro-batch."""
    found: dict[tuple[int, int], int] = {}
    for event in events:
        where = event.key.step, event.key.rank
        found[where] = max(found.get(where, 0), event.key.micro)
    return found
