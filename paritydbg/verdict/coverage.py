"""How much of two runs was looked at: what was compared, and what no comparison can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Event, Role
from paritydbg.model.pair import Alignment
from paritydbg.model.report import Coverage
from paritydbg.model.source import EventSource
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.judge import Judged
from paritydbg.verdict.randomness import DRAWN
from paritydbg.weights.rules import DROPPED


def coverage(
    alignment: Alignment,
    compared: Iterable[Comparison],
    judged: Iterable[Judged],
    flow: Flow,
    sources: tuple[EventSource, EventSource],
) -> Coverage:
    """The coverage of a diagnosis.

    A tensor that has no partner of its own counts as compared where the very same bytes were, of the
    same step: what an activation without a partner hands on is what the next layer takes in. Counters
    of batches that one framework alone keeps, and nothing computes with, are left out.

    Args:
        sources: the reference and the port.
    """
    tested: tuple[set[Event], set[Event]] = set(), set()
    for comparison in compared:
        tested[0].update(comparison.pair.reference)
        tested[1].update(comparison.pair.port)
    captured = sum(len(source.events) for source in sources)
    done = sum(len(events) for events in tested)
    known = tuple({_bytes_of(event) for event in events} for events in tested)
    reasons: Counter[str] = Counter()
    for one in alignment.unpaired:
        side = 0 if one.side == "reference" else 1
        if _is_counter(one.event):
            captured -= 1
        elif _bytes_of(one.event) in known[side] and _tells(one.event, sources[side]):
            done += 1
        else:
            reasons[one.reason] += 1
    return Coverage(captured, done, tuple(reasons.most_common()), masked(judged, flow))


def masked(judged: Iterable[Judged], flow: Flow) -> int:
    """How many compared tensors differ behind a dropout that drew other masks, and so tell nothing."""
    behind: set[Event] = set()
    drawn: set[Event] = set()
    for one in judged:
        comparison = one.comparison
        if comparison is None or comparison.verdict is not Verdict.INHERITED:
            continue
        if comparison.reason.startswith(DRAWN):
            drawn.add(one.event)
        elif any(source in behind or source in drawn for source in flow.sources[one.event]):
            behind.add(one.event)
    return len(behind)


def _bytes_of(event: Event) -> tuple[int, str]:
    return event.key.step, event.digest


def _is_counter(event: Event) -> bool:
    return event.key.role is Role.BUFFER and event.key.name.rpartition(".")[2] in DROPPED


def _tells(event: Event, source: EventSource) -> bool:
    """Whether equal bytes are more than chance: zeros and single numbers meet anywhere."""
    if not event.shape or max(event.shape) < 2:
        return False
    if event.has_values:
        return bool(source.load(event).any())
    return source.load_sketch(event).l2 > 0
