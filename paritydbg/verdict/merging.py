"""Findings that say one thing become one, and all of them stand in the ladder's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import AttributeDifference, Finding, Stage

_LADDER = (
    Stage.INPUT_DATA,
    Stage.STRUCTURE,
    Stage.WEIGHTS,
    Stage.CONFIG,
    Stage.FORWARD,
    Stage.LOSS,
    Stage.BACKWARD,
    Stage.LOSS_SCALE,
    Stage.DISTRIBUTED,
    Stage.UPDATE,
    Stage.TOOL_USAGE,
    Stage.RUNNING_STATS,
    Stage.STATE,
)


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """Each place once, and layers that share a reason under the first of them."""
    kept: list[Finding] = []
    for finding in findings:
        twin = next((k for k in kept if _same(k, finding)), None)
        if twin is None:
            kept.append(finding)
        elif finding.place != twin.place and finding.place not in twin.also:
            kept[kept.index(twin)] = replace(twin, also=(*twin.also, finding.place))
    return kept


def without_repeats(explained: Iterable[Finding]) -> tuple[Finding, ...]:
    """Explained findings, where what goes wrong in every update is told once, of the first step."""
    kept: list[Finding] = []
    for finding in explained:
        twin = next((k for k in kept if _again(k, finding)), None)
        if twin is None:
            kept.append(finding)
        else:
            kept[kept.index(twin)] = replace(twin, also=(*twin.also, finding.place))
    return tuple(kept)


def _again(first: Finding, later: Finding) -> bool:
    """Whether an update's finding has nothing that an earlier step's has not."""
    if first.phase is not Phase.UPDATE or first.stage is not later.stage or first is later:
        return False
    if later.phase is not Phase.UPDATE or first.step >= later.step or _role(first) != _role(later):
        return False
    known, told = ({cause.slug for cause in one.causes} for one in (first, later))
    return told <= known and bool(told) == bool(known)


def _role(finding: Finding) -> Role | None:
    return finding.evidence.pair.first.key.role if finding.evidence is not None else None


def _same(first: Finding, later: Finding) -> bool:
    if first.stage is Stage.UPDATE and _role(first) != _role(later):
        # What an optimizer is given and what it makes of it are two things.
        return False
    if later.place in (first.place, *first.also) and first.stage is later.stage:
        return True
    told = _told(first.attributes), _told(later.attributes)
    return first.stage is later.stage and bool(told[0]) and told[0] == told[1]


def rung(finding: Finding) -> tuple[int, int, int]:
    """A key to sort findings by: step, rung of the ladder, order of execution."""
    order = finding.evidence.pair.first.order if finding.evidence is not None else -1
    backward = finding.phase is Phase.BACKWARD
    return finding.step, _LADDER.index(finding.stage), order if not backward else max(order, 0)


def alike(
    layer: str,
    attributes: tuple[AttributeDifference, ...],
    differences: Mapping[str, tuple[AttributeDifference, ...]],
) -> tuple[str, ...]:
    """Other layers that were told differently in just the same way."""
    if not attributes:
        return ()
    told = _told(attributes)
    return tuple(
        name for name, of_layer in differences.items() if name != layer and _told(of_layer) == told
    )


def _told(attributes: Iterable[AttributeDifference]) -> set[tuple[str, str, str]]:
    return {(d.name, str(d.reference), str(d.port)) for d in attributes}
