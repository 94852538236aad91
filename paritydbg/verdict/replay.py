"""Joins a forced replay to a free run: each layer judged on the reference's own inputs.

What the replay tested replaces what the free run told of forward, loss and backward; what it could
not test, and everything that no layer computes, stays as the free run has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from paritydbg.measure.sketch import Sketch
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Event, EventKey, Phase, Role
from paritydbg.model.pair import Alignment, EventPair
from paritydbg.model.record import RunRecord
from paritydbg.model.source import EventSource
from paritydbg.verdict.calls import CallId, call_id
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.judge import MATTERS, Judged
from paritydbg.verdict.updates import Update

# What a replay judges: all that layers compute from what they are given.
TESTED = frozenset(
    {Role.INPUT, Role.OUTPUT, Role.GRAD_INPUT, Role.GRAD_OUTPUT, Role.GRAD, Role.LOSS}
)


# What lies between autograd and the parameters after a step, where the free run could not judge it:
# the replay gives the reference's gradients before clipping, and again before the update.
STEPPED = frozenset({Role.GRAD_APPLIED, Role.PARAMETER, Role.BUFFER})


@dataclass(frozen=True)
class Replay:
    """A forced replay of the port and, where there is one, of the reference by itself.

    Attributes:
        reference: gradients of inputs are each layer's own share where it is a replay; else the
            reference's plain run.
        port: the port's forced replay.
        own_gradients: whether the reference's gradients of inputs are shares.
    """

    reference: EventSource
    port: EventSource
    own_gradients: bool


class Joined:
    """A run whose events may also be those of its replay; in all else it is the free run."""

    def __init__(self, free: EventSource, forced: EventSource) -> None:
        self._free = free
        self._forced = forced
        self._of_replay = frozenset(forced.events)

    @property
    def path(self) -> str:
        """The free run's."""
        return self._free.path

    @property
    def run(self) -> RunRecord:
        """The free run's."""
        return self._free.run

    @property
    def events(self) -> tuple[Event, ...]:
        """The free run's."""
        return self._free.events

    def load(self, event: Event) -> NDArray[Any]:
        """The values, from whichever run the event is of."""
        return self._of(event).load(event)

    def load_sketch(self, event: Event) -> Sketch:
        """The sketch, from whichever run the event is of."""
        return self._of(event).load_sketch(event)

    def _of(self, event: Event) -> EventSource:
        # Equal events have equal digests, and so equal bytes.
        return self._forced if event in self._of_replay else self._free


def replayed_pairs(alignment: Alignment, replay: Replay) -> Alignment:
    """The alignment's pairs between the two replays: the same tensors by their keys."""
    mine = {event.key: event for event in replay.reference.events}
    yours = {event.key: event for event in replay.port.events}
    uneven = _passes(mine) ^ _passes(yours)
    pairs: dict[EventKey, EventPair] = {}
    for pair in alignment.events:
        names = [event.key for event in pair.reference], [event.key for event in pair.port]
        for left, right in (names, _gradients(names)):
            found, other = _found(left, mine), _found(right, yours)
            if found and other and _tested(found[0].key, replay, uneven):
                done = EventPair(found, other, pair.transform, pair.how, pair.confidence)
                pairs.setdefault(done.first.key, done)
    ordered = sorted(pairs.values(), key=lambda pair: pair.first.order)
    return replace(alignment, events=tuple(ordered), unpaired=())


def _passes(events: Iterable[EventKey]) -> set[tuple[int, int]]:
    return {(key.step, key.micro) for key in events if key.role in TESTED}


def _tested(key: EventKey, replay: Replay, uneven: set[tuple[int, int]]) -> bool:
    if key.role not in TESTED | STEPPED:
        return False
    if key.role is Role.GRAD_INPUT and not replay.own_gradients:
        return False
    # Where the sides cut a batch into other parts, their losses may weigh these differently.
    return key.phase is Phase.FORWARD or key.step not in {step for step, _ in uneven}


def _gradients(
    names: tuple[Sequence[EventKey], Sequence[EventKey]],
) -> tuple[list[EventKey], list[EventKey]]:
    """The gradients of paired tensors: the free run of a port may lack some."""
    left, right = ([key.gradient for key in side] for side in names)
    return [k for k in left if k is not None], [k for k in right if k is not None]


def _found(keys: Sequence[EventKey], known: Mapping[EventKey, Event]) -> tuple[Event, ...]:
    found = tuple(known[key] for key in keys if key in known)
    return found if len(found) == len(keys) else ()


def joined_judgements(
    free: Sequence[Judged], forced: Iterable[Judged], flow: Flow
) -> tuple[Judged, ...]:
    """The free run's judgements with the replay's in their place, where it tested.

    A layer that makes of other inputs the reference's own result makes up for what came in (hidden
    channels in another order): fed with the reference's inputs it differs, and is right.
    """
    tested = {one.event.key: one for one in forced if one.comparison is not None}
    stepped = {key: tested.pop(key) for key in list(tested) if key.role in STEPPED}
    unfed = _unfed(tested.values())
    done = []
    for one in free:
        after = stepped.get(one.event.key)
        if after is not None and _masked(one):
            done.append(_of_own(one, after))
            continue
        found = tested.get(one.event.key)
        kept = (
            found is None
            or _call(one.event.key) in unfed
            or _from_outside(one.event, flow)
            or (found.origin and _makes_up(one))
        )
        done.append(one if found is None or kept else replace(found, event=one.event))
    return tuple(done)


def _masked(free: Judged) -> bool:
    """Whether the free run has more of what came in than it could judge, after a step."""
    if free.event.key.phase is not Phase.UPDATE or free.comparison is None:
        return False
    return free.comparison.verdict is Verdict.INHERITED


def _of_own(free: Judged, forced: Judged) -> Judged:
    """The replay's judgement, told of the free run's tensors: those belong to its gradients."""
    if free.comparison is None or forced.comparison is None:
        return free
    done = replace(forced.comparison, pair=free.comparison.pair)
    return replace(forced, event=free.event, comparison=done, fed=True)


def joined_updates(
    free: Mapping[Event, Update], forced: Mapping[Event, Update], judged: Iterable[Judged]
) -> dict[Event, Update]:
    """The free run's updates, with the replay's comparison where that is what was judged."""
    moved = {event.key: update for event, update in forced.items()}
    fed = {one.event: one.comparison for one in judged if one.fed}
    done = dict(free)
    for event in free:
        comparison, other = fed.get(event), moved.get(event.key)
        if comparison is not None and other is not None:
            done[event] = replace(other, comparison=comparison)
    return done


def _from_outside(event: Event, flow: Flow) -> bool:
    """Whether an input comes from no layer: nothing was replaced on its way, and the batch is judged."""
    if event.key.role is not Role.INPUT:
        return False
    return not any(source.key.role in TESTED for source in flow.sources[event])


def _unfed(tested: Iterable[Judged]) -> set[tuple[CallId, Phase]]:
    """Calls that could not be given the reference's values, for theirs were of another shape."""
    found = set()
    for one in tested:
        comparison = one.comparison
        if comparison is not None and comparison.metrics is None:
            key = one.event.key
            if key.role is Role.INPUT:
                found |= {(call_id(key), Phase.FORWARD), (call_id(key), Phase.BACKWARD)}
            elif key.role is Role.GRAD_OUTPUT:
                found.add((call_id(key), Phase.BACKWARD))
    return found


def _call(key: EventKey) -> tuple[CallId, Phase]:
    return call_id(key), key.phase


def _makes_up(free: Judged) -> bool:
    comparison = free.comparison
    metrics = comparison.metrics if comparison is not None else None
    if metrics is None or free.inherited <= MATTERS:
        return False
    return metrics.relative_l2 <= MATTERS and not metrics.nonfinite_differs


def joined_comparisons(
    compared: Sequence[Comparison], judged: Iterable[Judged]
) -> tuple[Comparison, ...]:
    """Every pair's comparison with its final verdict, the replay's where it tested."""
    final = {one.event: one.comparison for one in judged if one.comparison is not None}
    return tuple(final.get(c.pair.first, c) for c in compared)
