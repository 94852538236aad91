"""Where a finding lies, in numbers: both sides' values there and what they may have been made from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Finding
from paritydbg.model.pair import EventPair

# A hypothesis has to leave no more of the difference than this.
LEFT = 0.1
# Tensors before the place that are tried as what it was made from, nearest first.
_MOST_SOURCES = 16


@dataclass(frozen=True)
class Source:
    """A tensor that both sides had at hand and that agrees.

    Attributes:
        words: what it is, for the evidence.
        own: whether it goes into the layer itself, so that it must have been used.
        name: the reference's name of the layer or batch entry.
    """

    words: str
    reference: Floats
    port: Floats
    own: bool
    name: str = ""


@dataclass(frozen=True)
class Site:
    """The deciding pair of a forward finding.

    Attributes:
        words: what differs, for the evidence.
        reference, port: both sides' values in the port's layout.
        gap: ‖port - reference‖ over the elements that are finite on both; 0 where the rest alone
            differs.
        limit: the share of the gap that a hypothesis may leave.
        sources: what it may have been made from.
    """

    words: str
    reference: Floats
    port: Floats
    gap: float
    limit: float
    sources: tuple[Source, ...]

    def left_of_reference(self, value: Floats | None) -> float:
        """The share of the gap by which a hypothesis misses the reference; inf where it cannot fit."""
        return self._left(value, self.reference)

    def left_of_port(self, value: Floats | None) -> float:
        """The share of the gap by which a hypothesis misses the port."""
        return self._left(value, self.port)

    def _left(self, value: Floats | None, wanted: Floats) -> float:
        if value is None or value.shape != wanted.shape:
            return math.inf
        difference = (value - wanted)[np.isfinite(self.reference) & np.isfinite(self.port)]
        if not np.isfinite(difference).all():
            return math.inf
        return float(np.linalg.norm(difference)) / self.gap


def site_of(finding: Finding, context: Context) -> Site | None:
    """The site of a forward finding, None where its values cannot be looked at."""
    evidence = finding.evidence
    if evidence is None or evidence.pair.first.key.phase is not Phase.FORWARD:
        return None
    sides = context.sides(evidence.pair)
    if sides is None:
        return None
    gap = gap_of(sides)
    if not gap and evidence.verdict is not Verdict.NONFINITE:
        return None
    allowed = evidence.allowance.l2 if evidence.allowance is not None else 0.0
    key = evidence.pair.first.key
    slot = f"[{key.slot}]" if key.slot else ""
    return Site(
        words=f"{key.role.value}{slot} of {key.place}",
        reference=sides.reference,
        port=sides.port,
        gap=gap,
        # Rounding of the values themselves cannot be explained away.
        limit=max(LEFT, min(0.4, 0.5 * allowed / gap)) if gap else LEFT,
        sources=tuple(_sources(evidence.pair, context)),
    )


def gap_of(sides: Sides) -> float:
    """‖port - reference‖ over the elements that are finite on both sides."""
    both = np.isfinite(sides.reference) & np.isfinite(sides.port)
    return float(np.linalg.norm(sides.port[both] - sides.reference[both]))


def _sources(pair: EventPair, context: Context) -> Iterator[Source]:
    """The layer's own inputs where an output differs, else what was computed before."""
    key = pair.first.key
    if key.role is Role.OUTPUT:
        for comparison in context.comparisons_of(key.name, Role.INPUT, key.step):
            other = comparison.pair.first.key
            if other.call == key.call and other.rank == key.rank and _agrees(comparison):
                source = _source(comparison, context, own=True)
                if source is not None:
                    yield source
    yield from _earlier(pair, context)


def _earlier(pair: EventPair, context: Context) -> Iterator[Source]:
    key, order = pair.first.key, pair.first.order
    earlier = [
        comparison
        for comparison in (
            *context.of_role(Role.OUTPUT, key.step),
            *context.of_role(Role.INPUT, key.step),
            *context.of_role(Role.BATCH, key.step),
        )
        if comparison.pair.first.order < order
        and comparison.pair.first.key.micro == key.micro
        and comparison.pair.first.key.rank == key.rank
        and (comparison.pair.first.key.name, comparison.pair.first.key.call) != (key.name, key.call)
        and _agrees(comparison)
    ]
    earlier.sort(key=lambda comparison: -comparison.pair.first.order)
    seen: set[str] = set()
    for comparison in earlier:
        digest = comparison.pair.first.digest
        if digest in seen:
            continue
        seen.add(digest)
        source = _source(comparison, context, own=False)
        if source is not None:
            yield source
        if len(seen) == _MOST_SOURCES:
            return


def _agrees(comparison: Comparison) -> bool:
    return comparison.verdict in (Verdict.MATCH, Verdict.SUSPECT)


def _source(comparison: Comparison, context: Context, own: bool) -> Source | None:
    sides = context.sides(comparison.pair)
    if sides is None:
        return None
    key = comparison.pair.first.key
    words = f"the {key.role.value} of {key.place}"
    return Source(words, sides.reference, sides.port, own, key.name)
