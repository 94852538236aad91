"""One finding per step for what went wrong between the gradients and the parameters after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.finding import Finding, Stage
from paritydbg.verdict.judge import Judged
from paritydbg.verdict.updates import Update


def update_findings(
    origins: Iterable[Judged], judged: Sequence[Judged], updates: Mapping[Event, Update]
) -> list[Finding]:
    """Updates and applied gradients that differ of their own, gathered by step.

    Where a replay judged an update on the reference's own gradients, it is a finding beside that of
    what the optimizer was given.
    """
    origins = tuple(origins)
    # Judged on the same gradients, what an optimizer makes of them is its own affair.
    fed = {one.event.key.step for one in origins if one.fed and _of_update(one)}
    by_step: dict[tuple[int, bool], list[Judged]] = {}
    for one in origins:
        key = one.event.key
        if _of_update(one) or key.role is Role.GRAD_APPLIED:
            alone = _of_update(one) and key.step in fed
            by_step.setdefault((key.step, alone), []).append(one)
    return [_finding(step, found, judged, updates) for (step, _), found in by_step.items()]


def _of_update(one: Judged) -> bool:
    return one.event.key.role is Role.PARAMETER and one.event.key.phase is Phase.UPDATE


def _finding(
    step: int, found: Sequence[Judged], judged: Sequence[Judged], updates: Mapping[Event, Update]
) -> Finding:
    of_step = {event: u for event, u in updates.items() if event.key.step == step}
    names = tuple(dict.fromkeys(one.event.key.name for one in found))
    moving = {event.key.name for event, update in of_step.items() if update.moved_reference}
    most = 2 * len(names) >= len(moving)
    first = next((one for one in found if one.event.key.role is Role.GRAD_APPLIED), found[0])
    place = f"step{step}" if most else f"step{step}:{names[0]}"
    stage, summary = _story(step, found, judged, of_step, updates)
    return Finding(
        stage=stage,
        verdict=first.comparison.verdict if first.comparison is not None else Verdict.DIVERGED,
        place=place,
        port_place=first.comparison.pair.port[0].key.name if first.comparison is not None else "",
        summary=summary,
        phase=Phase.UPDATE,
        step=step,
        evidence=first.comparison,
        inputs_agree=True,
        also=tuple(f"step{step}:{name}" for name in names),
    )


def _story(
    step: int,
    found: Sequence[Judged],
    judged: Sequence[Judged],
    of_step: Mapping[Event, Update],
    updates: Mapping[Event, Update],
) -> tuple[Stage, str]:
    """The rung and the sentence."""
    wrong = {one.event for one in found}
    here = [update for event, update in of_step.items() if event in wrong]
    if here and all(u.moved_reference and not u.moved_port for u in here):
        moved_before = any(
            update.moved_port for event, update in updates.items() if event.key.step < step
        )
        if moved_before:
            return Stage.TOOL_USAGE, (
                f"in step {step} the port's optimizer no longer moves the parameters, which it did "
                "before: it works on other tensors than the net"
            )
        return Stage.UPDATE, f"in step {step} the port's optimizer moves nothing"
    if _overflowed(step, judged) and any(u.moved_port != u.moved_reference for u in here):
        skipping = "reference" if here[0].moved_port else "port"
        return Stage.LOSS_SCALE, (
            f"in step {step} gradients are not finite: the {skipping} skips the update, the other "
            "side applies it"
        )
    applied = [one for one in found if one.event.key.role is Role.GRAD_APPLIED]
    if applied:
        return Stage.UPDATE, (
            f"what the optimizer is given in step {step} differs though the gradients agree: "
            "clipping, scaling or accumulation lies between"
        )
    given = (
        "the optimizer was given the reference's gradients"
        if any(one.fed for one in found)
        else "the gradients agree"
    )
    return Stage.UPDATE, (
        f"after step {step} {len(found)} parameter{'s' if len(found) > 1 else ''} went to another "
        f"place though {given}"
    )


def _overflowed(step: int, judged: Sequence[Judged]) -> bool:
    """Whether any gradient of the step is not finite in the reference."""
    return any(
        one.event.key.step == step
        and one.event.key.role in (Role.GRAD, Role.GRAD_APPLIED)
        and one.comparison is not None
        and one.comparison.metrics is not None
        and one.comparison.metrics.nan_reference + one.comparison.metrics.inf_reference > 0
        for one in judged
    )
