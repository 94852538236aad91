"""Findings that say one thing become one, and all of them stand in the ladder's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paritydbg.model.event import Phase
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


def _same(first: Finding, later: Finding) -> bool:
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
