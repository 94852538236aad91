"""Causes of updates that differ though the gradients agree: the rule is recalculated, variant by variant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from paritydbg.explain.causes.applied import applied_causes
from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.rates import rate_causes
from paritydbg.explain.causes.site import LEFT
from paritydbg.explain.causes.trajectories import (
    Trajectory,
    learning_rates,
    rounding,
    trajectories,
)
from paritydbg.explain.causes.update_rules import Rule, change, rule_of
from paritydbg.explain.causes.variants import Variant, variants
from paritydbg.explain.context import Context
from paritydbg.explain.optimizers import decay_of, group_of
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause, Finding, Stage
from paritydbg.model.record import OptimizerRecord

_STAGES = (Stage.UPDATE, Stage.TOOL_USAGE, Stage.LOSS_SCALE)


@dataclass(frozen=True)
class _Known:
    """A trajectory with both sides' rules.

    Attributes:
        rates: both sides' learning rates of the last step.
        port: None where the port's optimizer is of no known kind.
    """

    path: Trajectory
    reference: Rule
    port: Rule | None
    rates: tuple[float, float]

    @property
    def limit(self) -> float:
        """The share of the gap that may be left: rounding cannot be explained."""
        return max(LEFT, min(0.5, rounding(self.path) / self.path.gap))

    def left(self, rule: Rule, rate: float) -> float:
        """The share of the gap by which a rule misses what the port did."""
        found = change(
            rule, [s.port for s in self.path.before], [s.port for s in self.path.given], rate
        )
        return float(np.linalg.norm(self.path.moved.port - found)) / self.path.gap

    def reference_left(self) -> float:
        """The same for the reference and its own rule."""
        before = [s.reference for s in self.path.before]
        found = change(
            self.reference, before, [s.reference for s in self.path.given], self.rates[0]
        )
        return float(np.linalg.norm(self.path.moved.reference - found)) / self.path.gap


def update_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What the optimizer did, told by its values."""
    if finding.stage not in _STAGES:
        return
    names = wrong_parameters(finding)
    still = tuple(_still(finding, names, context))
    yield from still
    if still:
        return
    evidence = finding.evidence
    if evidence is not None and evidence.pair.first.key.role is Role.GRAD_APPLIED:
        yield from applied_causes(names, context, finding.step)
        return
    yield from rate_causes(context, finding.step)
    paths = [p for p in trajectories(names, context, finding.step) if p.gap]
    known = [k for path in paths if (k := _known(path, context, finding.step)) is not None]
    sure = [k for k in known if k.reference_left() <= k.limit]
    found = tuple(_by_rule(sure, names, context))
    yield from found
    if not found:
        yield from _by_factor(paths, context)


def wrong_parameters(finding: Finding) -> tuple[str, ...]:
    """The reference's parameters that an update finding names."""
    places = finding.also or (finding.place,)
    return tuple(place.partition(":")[2] for place in places if ":" in place)


def _still(finding: Finding, names: tuple[str, ...], context: Context) -> Iterator[Cause]:
    """Parameters that do not move, or move by what is not finite."""
    step = finding.step
    moved = [_moved(name, step, context) for name in names]
    seen = [m for m in moved if m is not None]
    if _overflowed(names, step, context):
        reference, port = any(m[0] for m in seen), any(m[1] for m in seen)
        # NaN counts as moved: it came from applying the gradient.
        if reference != port:
            who = "port" if port else "reference"
            yield Cause(
                "update-despite-overflow",
                f"the gradients of step {step} are not finite, and the {who} applies them "
                "nevertheless: check all_finite(grads) and skip the step, as the other side does",
                f"step {step}: parameters moved: reference {reference}, port {port}",
                0.93,
            )
        return
    if not seen or any(m[1] for m in seen) or not any(m[0] for m in seen):
        return
    before = [_moved(name, s, context) for s in range(1, step) for name in names]
    if any(m is not None and m[1] for m in before):
        yield Cause(
            "set-data-detaches-optimizer",
            "the port's optimizer moved these parameters before and no longer does: set_data or "
            "load_param_into_net after its first step gave the net new tensors; use ops.assign or "
            "Parameter.copy_, or build the optimizer afterwards",
            f"step {step}: {len(seen)} parameters unchanged in the port, bit for bit",
            0.93,
        )
        return
    record = context.port.run.optimizers[0].api if context.port.run.optimizers else "the optimizer"
    yield Cause(
        "optimizer-step-is-noop",
        f"{record} ran and changed nothing, without an error",
        f"step {step}: {len(seen)} parameters unchanged in the port, bit for bit, while the "
        "reference's moved",
        0.95,
    )


def _moved(name: str, step: int, context: Context) -> tuple[bool, bool] | None:
    before = context.sides(context.pair(name, Role.PARAMETER, step, Phase.FORWARD))
    after = context.sides(context.pair(name, Role.PARAMETER, step, Phase.UPDATE))
    if before is None or after is None:
        return None
    return (
        not np.array_equal(before.reference, after.reference, equal_nan=True),
        not np.array_equal(before.port, after.port, equal_nan=True),
    )


def _overflowed(names: tuple[str, ...], step: int, context: Context) -> bool:
    for role, phase in ((Role.GRAD, Phase.BACKWARD), (Role.GRAD_APPLIED, Phase.UPDATE)):
        for name in names:
            values = context.sides(context.pair(name, role, step, phase))
            if values is not None and not np.isfinite(values.reference).all():
                return True
    return False


def _known(path: Trajectory, context: Context, step: int) -> _Known | None:
    mine = _record(context.reference.run.optimizers, path.name)
    yours = _record(context.port.run.optimizers, path.port_name)
    reference = rule_of(*mine) if mine is not None else None
    if mine is None or reference is None:
        return None
    port = rule_of(*yours) if yours is not None else None
    rates = learning_rates(context, step)
    first = _rate(rates[0], mine[1], reference.lr)
    told = port.lr if port is not None and port.lr else first
    return _Known(path, reference, port, (first, _rate(rates[1], yours[1] if yours else 0, told)))


def _record(optimizers: Iterable[OptimizerRecord], name: str) -> tuple[OptimizerRecord, int] | None:
    for record in optimizers:
        group = group_of(record, name)
        if group is not None:
            return record, group
    return None


def _rate(recorded: tuple[float, ...], group: int, told: float) -> float:
    if not recorded:
        return told
    return recorded[group] if group < len(recorded) else recorded[0]


def _by_rule(known: list[_Known], names: tuple[str, ...], context: Context) -> Iterator[Cause]:
    """The variant that explains most of the parameters."""
    if not known:
        return
    best: tuple[int, float, Variant] | None = None
    for number in range(_count(known[0])):
        tried = [_nth(k, number) for k in known]
        lefts = [
            k.left(v.rule, k.rates[1]) / k.limit
            for k, v in zip(known, tried, strict=True)
            if v is not None
        ]
        good = [left for left in lefts if left <= 1]
        mean = float(np.mean(good)) if good else 1.0
        first = next((v for v in tried if v is not None), None)
        if first is None or not good:
            continue
        # Simpler variants come first: a later one has to explain more, or much better.
        if best is None or len(good) > best[0] or (len(good) == best[0] and mean < 0.3 * best[1]):
            best = len(good), mean, first
    if best is None:
        return
    count, mean, variant = best
    evidence = (
        f"recomputed in float64: {count} of {len(known)} parameters went where this rule leads "
        f"({percent(mean * LEFT)} of the difference left)"
    )
    sure = round(0.97 * count / len(known) - 0.3 * mean * LEFT, 3)
    if not variant.slugs:
        # What it was told is what it did: the settings differ.
        return
    for place, slug in enumerate(variant.slugs):
        if slug == "weight-decay-missing":
            slug = _decay_slug(known, names, context)
        yield Cause(slug, f"the port {variant.words}", evidence, sure - 0.01 * place)


def _base(known: _Known) -> Rule:
    return known.port if known.port is not None else known.reference


def _count(known: _Known) -> int:
    return sum(1 for _ in variants(_base(known), known.reference)) + 1


def _nth(known: _Known, number: int) -> Variant | None:
    """The same variant for another parameter, whose group may have other numbers."""
    every = list(variants(_base(known), known.reference))
    if number < len(every):
        return every[number]
    if known.reference.weight_decay or _base(known).weight_decay:
        return None
    decays = _other_decays(known)
    if not decays:
        return None
    more = replace(_base(known), weight_decay=decays)
    return Variant(("weight-decay-missing",), "decays these parameters too", more)


def _other_decays(known: _Known) -> float:
    return known.reference.weight_decay


def _decay_slug(known: list[_Known], names: tuple[str, ...], context: Context) -> str:
    """Whether the port leaves out the decay altogether, or of some parameters alone."""
    wrong = set(names)
    for record in context.reference.run.optimizers:
        for name in (n for group in record.parameters for n in group):
            if name in wrong or not decay_of(record, name):
                continue
            path = next(iter(trajectories((name,), context, 1)), None)
            if path is None:
                continue
            value = float(np.linalg.norm(path.before[-1].reference))
            expected = known[0].rates[0] * (decay_of(record, name) or 0.0) * value
            if expected > 5 * path.gap:
                return "weight-decay-groups"
    return "weight-decay-missing"


def _by_factor(paths: list[Trajectory], context: Context) -> Iterator[Cause]:
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
