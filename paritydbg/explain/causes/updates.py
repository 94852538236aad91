"""Causes of updates that differ though the gradients agree: the rule is recalculated, variant by variant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from paritydbg.explain.causes.applied import applied_causes
from paritydbg.explain.causes.rates import implied_rate, rate_causes
from paritydbg.explain.causes.rule_search import known_rules, rule_causes
from paritydbg.explain.causes.site import LEFT
from paritydbg.explain.causes.still import still_causes
from paritydbg.explain.causes.trajectories import (
    Trajectory,
    trajectories,
)
from paritydbg.explain.context import Context
from paritydbg.model.event import Role
from paritydbg.model.finding import Cause, Finding, Stage

_STAGES = (Stage.UPDATE, Stage.TOOL_USAGE, Stage.LOSS_SCALE)


def update_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What the optimizer did, told by its values."""
    if finding.stage not in _STAGES:
        return
    names = wrong_parameters(finding)
    still = tuple(still_causes(finding, names, context))
    yield from still
    if still:
        return
    evidence = finding.evidence
    if evidence is not None and evidence.pair.first.key.role is Role.GRAD_APPLIED:
        yield from applied_causes(names, context, finding.step)
        return
    rates = tuple(rate_causes(context, finding.step))
    yield from rates
    paths = [p for p in trajectories(names, context, finding.step) if p.gap]
    known = [k for path in paths if (k := known_rules(path, context, finding.step)) is not None]
    sure = [k for k in known if k.reference_left() <= k.limit]
    found = tuple(rule_causes(finding, sure, names, context))
    # A schedule that was recognised says more than two numbers that differ.
    yield from (c for c in found if not (rates and c.slug == "learning-rate"))
    if not found and not rates:
        yield from _by_factor(paths, context, finding.step)


def wrong_parameters(finding: Finding) -> tuple[str, ...]:
    """The reference's parameters that an update finding names."""
    places = finding.also or (finding.place,)
    return tuple(place.partition(":")[2] for place in places if ":" in place)


def _by_factor(paths: list[Trajectory], context: Context, step: int) -> Iterator[Cause]:
    """The port's change is the reference's times one number."""
    ratios = []
    for path in paths:
        size = float(np.vdot(path.moved.reference, path.moved.reference))
        if not size:
            continue
        ratio = float(np.vdot(path.moved.reference, path.moved.port)) / size
        left = float(np.linalg.norm(path.moved.port - ratio * path.moved.reference)) / path.gap
        if left <= LEFT:
            ratios.append(ratio)
    if ratios and len(ratios) == len(paths):
        low, high = min(ratios), max(ratios)
        if high - low <= 0.02 * abs(high):
            yield from implied_rate(float(np.mean(ratios)), context, step)
            yield Cause(
                "learning-rate",
                f"the port's steps are {np.mean(ratios):.4g} times the reference's, in the same "
                "direction: another learning rate, or gradients scaled in between",
                f"{len(ratios)} parameters, ratios {low:.6g} to {high:.6g}",
                0.7,
            )
        else:
            yield Cause(
                "learning-rate-groups",
                "the port's steps are the reference's times another number for each parameter",
                f"{len(ratios)} parameters, ratios {low:.4g} to {high:.4g}",
                0.6,
            )
