"""Walks the compared events up the ladder and tells origins from what was inherited.

An event may differ by its own rounding and by what came in; more than that is an origin. Parameters
after an update are judged in `updates`, excuses are looked for in `excuses`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from paritydbg.measure.noise import Noise
from paritydbg.model.comparison import Allowance, Comparison, Metrics, Verdict
from paritydbg.model.event import Event, Phase, Role
from paritydbg.verdict.calls import CallNode
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.sketched import unsure

# How much more than what came in may come out before it counts as an origin. Clean runs of tensors
# over 64 elements peaked at a fourth of it, small ones just below it.
GAIN = 20.0
# An operator's own rounding is known better than the gain of what follows.
OWN = 4.0
# Below this relative difference nothing is called an origin without a reason that explains it: small
# epsilons and inaccurate kernels both land there.
MATTERS = 1e-4
# What an event of another shape, or one that is missing, hands on.
_LOST = 1.0

_ROOT_CAUSES = (Verdict.DIVERGED, Verdict.SHAPE, Verdict.NONFINITE)


@dataclass(frozen=True)
class Judged:
    """One event of the reference after judgement.

    Attributes:
        event: the reference's.
        comparison: with its final verdict; None where it has no partner.
        inherited: the largest relative difference among what flowed into it.
        origin: whether the difference began here.
        missing: a gradient that the port has not, confirmed by its parameters.
        fed: an update or what it is made from, judged by a replay on the reference's gradients.
    """

    event: Event
    comparison: Comparison | None
    inherited: float
    origin: bool = False
    missing: bool = False
    fed: bool = False


class Judge:
    """Judges event by event; what was judged stands for what flows on.

    Args:
        forced: whether every layer was given the reference's values, so that nothing is inherited.

    Attributes:
        judged: by the reference's event, in the order of the walk.
    """

    def __init__(self, flow: Flow, noise: Noise, forced: bool = False) -> None:
        self._flow = flow
        self._forced = forced
        self._noise = noise
        self._carried: dict[Event, float] = {}
        # Metrics of the pair that is being judged.
        self._prior: dict[Event, Metrics] = {}
        self.judged: dict[Event, Judged] = {}

    def compared(self, comparison: Comparison) -> Judged:
        """Judge a compared pair by its first event."""
        event = comparison.pair.first
        sources = self._sources(event)
        inherited = self.inherited_by(event)
        metrics = comparison.metrics
        if metrics is None or comparison.verdict is Verdict.NONFINITE:
            lost = self._largest_lost(sources)
            origin = lost is None
            verdict = comparison.verdict if origin else Verdict.INHERITED
            return self._note(
                Judged(event, replace(comparison, verdict=verdict), inherited, origin), _LOST
            )
        self._prior[event] = metrics
        allowance = self._allowance(event, comparison, metrics, sources, inherited)
        score = _score(metrics.difference_l2, allowance.l2)
        verdict = self._verdict(comparison, metrics, allowance)
        reason = comparison.reason
        if comparison.verdict is not Verdict.MATCH:
            bounds = allowance.l2, MATTERS * metrics.reference_l2
            reason = reason or unsure(metrics, bounds, event)
        done = replace(comparison, verdict=verdict, allowance=allowance, score=score, reason=reason)
        origin = verdict is Verdict.DIVERGED
        return self._note(Judged(event, done, inherited, origin), _relative(metrics))

    def settled(self, event: Event, comparison: Comparison, carried: float) -> Judged:
        """Take over a judgement that was made elsewhere."""
        inherited = self.inherited_by(event)
        origin = comparison.verdict in _ROOT_CAUSES
        return self._note(Judged(event, comparison, inherited, origin), carried)

    def missing(self, event: Event, arrives: bool = True) -> Judged:
        """Judge a gradient of the reference's that the port, as its parameters confirm, has not.

        Args:
            arrives: whether the place is where it should have arrived; a place that should have sent
                it on is no origin, and hands on what came in.
        """
        inherited = self._largest(self._sources(event))
        origin = arrives and inherited < MATTERS
        carried = _LOST if arrives else inherited
        return self._note(Judged(event, None, inherited, origin, missing=True), carried)

    def unpaired(self, event: Event) -> Judged:
        """Pass over an event without a partner: it hands on what came in."""
        inherited = self._largest(self._sources(event))
        return self._note(Judged(event, None, inherited), inherited)

    def inherited_by(self, event: Event) -> float:
        """The largest relative difference among what flows into an event, as far as judged."""
        if event.key.role is Role.GRAD_APPLIED:
            return self._inherited_by_applied(event)
        return self._largest(self._sources(event))

    def _inherited_by_applied(self, event: Event) -> float:
        """Of a gradient that an optimizer is given: its own one's difference, and the global norm's.

        Clipping by the global norm makes g·c/‖G‖ of g, which moves by δg + δ‖G‖/‖G‖ at most: a tiny
        gradient that is all rounding moves its own one, not all others.
        """
        if self._forced:
            return 0.0
        own = change = size = 0.0
        for source in self._sources(event):
            metrics = self._metrics(source)
            if source.key.name == event.key.name or metrics is None:
                own = max(own, self._carried[source])
            if metrics is not None:
                lost = metrics.nonfinite_differs or not math.isfinite(metrics.reference_l2)
                change = math.inf if lost else math.hypot(change, metrics.difference_l2)
                size = math.hypot(size, metrics.reference_l2)
        total = min(change / size, _LOST) if size else 0.0
        return max(own, _LOST if math.isnan(total) else total)

    def carried(self, event: Event) -> float:
        """The relative difference that an event hands on, 0 while it is not judged."""
        return self._carried.get(event, 0.0)

    def revise(self, event: Event, comparison: Comparison, origin: bool) -> None:
        """Replace a judgement after the walk."""
        self.judged[event] = replace(self.judged[event], comparison=comparison, origin=origin)

    def _note(self, judged: Judged, carried: float) -> Judged:
        self.judged[judged.event] = judged
        self._carried[judged.event] = carried
        return judged

    def _sources(self, event: Event) -> tuple[Event, ...]:
        return tuple(s for s in self._flow.sources.get(event, ()) if s in self.judged)

    def _largest(self, sources: Iterable[Event]) -> float:
        if self._forced:
            return 0.0
        return max((self._carried[source] for source in sources), default=0.0)

    def _largest_lost(self, sources: Iterable[Event]) -> Event | None:
        """A source that differs beyond numbers or far enough to have made this, None without one."""
        if self._forced:
            return None
        for source in sources:
            found = self.judged[source].comparison
            if found is not None and (found.metrics is None or found.score == math.inf):
                return source
            if self._carried[source] >= MATTERS:
                return source
        return None

    def _allowance(
        self,
        event: Event,
        comparison: Comparison,
        metrics: Metrics,
        sources: tuple[Event, ...],
        inherited: float,
    ) -> Allowance:
        dtypes = self._dtypes(comparison, sources)
        terms = self._terms(event, sources)
        size = max(metrics.reference_l2, terms.size)
        own = self._noise.own(dtypes, size, event.key, metrics.reference_l2).allowing(OWN)
        through = max(GAIN * inherited * metrics.reference_l2, terms.inherited)
        if self._forced:
            through = 0.0
        words = own.words
        if through > own.l2:
            words = f"{GAIN:g} times what came in ({inherited:.1e})"
        return Allowance(own.l2 + through, own.basis, words)

    def _dtypes(self, comparison: Comparison, sources: tuple[Event, ...]) -> tuple[str, ...]:
        found = [event.dtype for event in (*comparison.pair.reference, *comparison.pair.port)]
        for source in sources:
            judged = self.judged[source].comparison
            if judged is not None and source.key.role not in (Role.PARAMETER, Role.BUFFER):
                found += [event.dtype for event in judged.pair.port]
                found.append(source.dtype)
        return tuple(dict.fromkeys(found))

    def _terms(self, event: Event, sources: tuple[Event, ...]) -> _Terms:
        role = event.key.role
        if role is Role.GRAD:
            return self._gradient_terms(event)
        if role is Role.LOSS:
            return self._loss_terms(event, sources)
        if role is Role.BUFFER:
            return self._statistics_terms(event, sources)
        # Glue and element-wise layers: what is added up may cancel, and differences pass as they are.
        # Values and gradients are of different sizes altogether.
        size = inherited = 0.0
        for source in sources:
            metrics = self._metrics(source)
            of_kind = source.shape == event.shape and source.key.phase is event.key.phase
            if metrics is not None and of_kind:
                size = max(size, metrics.reference_l2)
                inherited = max(inherited, GAIN * metrics.difference_l2)
        return _Terms(size if event.key.phase is Phase.FORWARD else 0.0, inherited)

    def _gradient_terms(self, event: Event) -> _Terms:
        """A parameter's gradient sums products over samples: its terms are bounded by ‖g‖·‖x‖.

        The norm of a sum of outer products is at most the product of the norms (Cauchy-Schwarz), and
        to first order it moves by ‖Δg‖·‖x‖ + ‖g‖·‖Δx‖; a bias and a norm's weight multiply g by
        numbers of size one.
        """
        size = inherited = 0.0
        key = event.key
        for call in self._flow.calls_behind(self._owner(event), key.step, key.rank):
            gradients = [m for e in call.grad_outputs if (m := self._metrics(e)) is not None]
            x, dx = self._factor(call, len(event.shape))
            for metrics in gradients:
                ones = math.sqrt(metrics.count) if len(event.shape) < 2 else 0.0
                factor = max(x, ones)
                size += metrics.reference_l2 * factor
                inherited += metrics.difference_l2 * factor + metrics.reference_l2 * dx
        return _Terms(size, inherited)

    def _factor(self, call: CallNode, axes: int) -> tuple[float, float]:
        """‖x‖ and ‖Δx‖ of a call's float inputs; whole numbers choose rows, with factor one."""
        total = change = 0.0
        for event in call.inputs:
            metrics = self._metrics(event)
            if metrics is None:
                continue
            if event.dtype.startswith(("int", "uint", "bool")):
                total += metrics.count
            else:
                total += metrics.reference_l2**2
                change += metrics.difference_l2**2
        return math.sqrt(total), math.sqrt(change)

    def _loss_terms(self, event: Event, sources: tuple[Event, ...]) -> _Terms:
        """A loss moves at most about as far as the worst of what it is made from.

        A loss much smaller than what it is made from comes of cancelling; one that was scaled down
        does not, so that no more than a thousandfold of the relative difference is granted.
        """
        inherited = 0.0
        for source in sources:
            metrics = self._metrics(source)
            if metrics is not None and source.key.role is Role.OUTPUT:
                most = 1e3 * metrics.relative_l2 * self._size(event)
                # No element differs by more than the norm, which is all that a sketch tells.
                worst = metrics.difference_l2 if math.isnan(metrics.max_abs) else metrics.max_abs
                inherited = max(inherited, min(worst, most))
        return _Terms(0.0, inherited)

    def _size(self, event: Event) -> float:
        return self._prior[event].reference_l2 if event in self._prior else 0.0

    def _statistics_terms(self, event: Event, sources: tuple[Event, ...]) -> _Terms:
        """A mean over a batch cancels: its terms have the input's root mean square."""
        size = inherited = 0.0
        for source in sources:
            metrics = self._metrics(source)
            if metrics is not None and source.key.role is Role.INPUT and metrics.count:
                scale = math.sqrt(max(1, math.prod(event.shape)) / metrics.count)
                size = max(size, metrics.reference_l2 * scale)
                inherited = max(inherited, GAIN * metrics.difference_l2 * scale)
        return _Terms(size, inherited)

    def _owner(self, event: Event) -> str:
        return self._flow.owner(event.key.name)

    def _metrics(self, event: Event) -> Metrics | None:
        judged = self.judged.get(event)
        return judged.comparison.metrics if judged is not None and judged.comparison else None

    @staticmethod
    def _verdict(comparison: Comparison, metrics: Metrics, allowance: Allowance) -> Verdict:
        if comparison.verdict is Verdict.MATCH:
            return Verdict.MATCH
        if metrics.difference_l2 <= allowance.l2:
            relative = _relative(metrics)
            return Verdict.MATCH if relative <= MATTERS else Verdict.INHERITED
        return Verdict.DIVERGED if _relative(metrics) > MATTERS else Verdict.SUSPECT


@dataclass(frozen=True)
class _Terms:
    """Norm of the terms of a sum, and how far what came in may move it."""

    size: float
    inherited: float


def origins(judged: Mapping[Event, Judged]) -> tuple[Judged, ...]:
    """Where differences began, in the order of the walk."""
    return tuple(one for one in judged.values() if one.origin)


def _relative(metrics: Metrics) -> float:
    """Relative difference for what follows; where the reference is all zero, 1 at most."""
    return min(metrics.relative_l2, _LOST) if math.isfinite(metrics.relative_l2) else _LOST


def _score(difference: float, allowed: float) -> float:
    if difference == 0.0:
        return 0.0
    return difference / allowed if allowed else math.inf
