"""Finds the rule by which the port's optimizer really moved its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from paritydbg.explain.causes.forms import percent
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
from paritydbg.model.finding import Cause, Finding
from paritydbg.model.record import OptimizerRecord


@dataclass(frozen=True)
class Known:
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


def known_rules(path: Trajectory, context: Context, step: int) -> Known | None:
    mine = _record(context.reference.run.optimizers, path.name)
    yours = _record(context.port.run.optimizers, path.port_name)
    reference = rule_of(*mine) if mine is not None else None
    if mine is None or reference is None:
        return None
    port = rule_of(*yours, reference) if yours is not None else None
    rates = learning_rates(context, step)
    first = _rate(rates[0], mine[1], reference.lr)
    told = port.lr if port is not None and port.lr else first
    return Known(path, reference, port, (first, _rate(rates[1], yours[1] if yours else 0, told)))


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


@dataclass(frozen=True)
class _Tried:
    """How well one variant explains the parameters.

    Attributes:
        lefts: shares of the gap that are left, of the parameters that it explains.
        exact: of how many the rest is no more than rounding.
    """

    variant: Variant
    lefts: tuple[float, ...]
    exact: int

    def better_than(self, other: _Tried) -> bool:
        """Whether it explains more; of two that explain the same the one that came first stays."""
        if len(self.lefts) != len(other.lefts):
            return len(self.lefts) > len(other.lefts)
        return self.exact > other.exact and np.mean(self.lefts) < 2 * np.mean(other.lefts)


def rule_causes(
    finding: Finding, known: list[Known], names: tuple[str, ...], context: Context
) -> Iterator[Cause]:
    """The variant that explains most of the parameters."""
    if not known:
        return
    best: _Tried | None = None
    for number in range(_count(known[0])):
        tried = _try(known, number)
        if tried is not None and (best is None or tried.better_than(best)):
            best = tried
    if best is None:
        return
    count, left = len(best.lefts), float(np.mean(best.lefts))
    evidence = (
        f"recomputed in float64: {count} of {len(known)} parameters went where this rule leads "
        f"({percent(left)} of the difference left)"
    )
    sure = round(0.97 * count / len(known) - 0.3 * left, 3)
    if not best.variant.slugs:
        # What it was told is what it did, so the reason lies in the settings.
        for difference in finding.attributes:
            if difference.cause:
                yield Cause(
                    difference.cause,
                    f"the port does what it was told: {difference.port_name or difference.name}="
                    f"{difference.port}, where the reference has {difference.reference}",
                    evidence,
                    sure,
                )
        return
    for place, slug in enumerate(_by_weight(best.variant.slugs, known)):
        if slug == "weight-decay-missing":
            slug = _decay_slug(known, names, context)
        yield Cause(slug, f"the port {best.variant.words}", evidence, sure - 0.01 * place)


def _try(known: list[Known], number: int) -> _Tried | None:
    lefts = []
    exact = 0
    first: Variant | None = None
    for one in known:
        variant = _nth(one, number)
        if variant is None:
            continue
        first = first or variant
        left = one.left(variant.rule, one.rates[1])
        if left <= one.limit:
            lefts.append(left)
            exact += left * one.path.gap <= rounding(one.path)
    return _Tried(first, tuple(lefts), exact) if first is not None and lefts else None


def _by_weight(slugs: tuple[str, ...], known: list[Known]) -> tuple[str, ...]:
    """The slugs of several changes, that first which alone explains most."""
    if len(slugs) < 2:
        return slugs
    alone: dict[str, float] = {}
    for one in known:
        for variant in variants(_base(one), one.reference):
            if len(variant.slugs) == 1 and variant.slugs[0] in slugs:
                left = one.left(variant.rule, one.rates[1])
                alone[variant.slugs[0]] = min(left, alone.get(variant.slugs[0], left))
    return tuple(sorted(slugs, key=lambda slug: alone.get(slug, 1.0)))


def _base(known: Known) -> Rule:
    return known.port if known.port is not None else known.reference


def _count(known: Known) -> int:
    return sum(1 for _ in variants(_base(known), known.reference)) + 1


def _nth(known: Known, number: int) -> Variant | None:
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


def _other_decays(known: Known) -> float:
    return known.reference.weight_decay


def _decay_slug(known: list[Known], names: tuple[str, ...], context: Context) -> str:
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
