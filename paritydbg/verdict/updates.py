"""Judges what an optimizer did to a parameter: the two changes are compared, not the values.

A change is small beside the value it is added to, and optimizers that divide by the gradient's own
size turn rounding in tiny gradients into whole steps: elements whose gradient is not sure are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.measure.metrics import measure
from paritydbg.measure.precision import tolerance, unit_roundoff
from paritydbg.model.comparison import Allowance, Comparison, Metrics, Verdict
from paritydbg.model.event import Event, EventKey, Phase, Role
from paritydbg.model.source import EventSource
from paritydbg.verdict.adaptive import epsilons, share_by_epsilon
from paritydbg.verdict.compare import paired_values
from paritydbg.verdict.sketched import ONLY_SKETCH, unsure
from paritydbg.verdict.sketched_changes import single_elements, sketched_changes, unsure_share

Floats = NDArray[np.float64]

# A gradient element is sure where the two sides agree on it to this share.
_SURE = 1e-3
# Differences of a change that matter, as a share of it; weight decay of 0.01 on weights near 0.1
# under Adam makes 1e-3.
MATTERS = 2e-4
_GAIN = 20.0


@dataclass(frozen=True)
class Update:
    """How one parameter was moved in one step.

    Attributes:
        comparison: of the two changes; its pair is that of the values after the step.
        moved_reference, moved_port: whether it moved at all.
        carried: relative difference of the values after the step.
    """

    comparison: Comparison
    moved_reference: bool
    moved_port: bool
    carried: float


class Updates:
    """Finds, for a parameter after a step, what it was before and what the optimizer was given.

    Args:
        comparisons: as of `gradient_comparisons`.
        same_given: whether both optimizers took the reference's gradients, whatever was on its way;
            what is sure is then told from autograd's own ones.
    """

    def __init__(
        self,
        comparisons: Mapping[EventKey, Comparison],
        reference: EventSource,
        port: EventSource,
        same_given: bool = False,
    ) -> None:
        self._same_given = same_given
        self._comparisons = comparisons
        self._reference = reference
        self._port = port
        self._exact = dict(epsilons(reference.run))
        self._epsilons = {
            name: epsilon for run in (reference.run, port.run) for name, epsilon in epsilons(run)
        }

    def judge(self, after: Comparison, inherited: float) -> Update | None:
        """The update that led to a parameter's value after a step; None without one before it.

        Args:
            inherited: largest relative difference among the gradients that were given.
        """
        key = after.pair.first.key
        before = self._comparisons.get(_at(key, Phase.FORWARD, Role.PARAMETER))
        if before is None:
            return None
        old = paired_values(before.pair, self._reference, self._port)
        new = paired_values(after.pair, self._reference, self._port)
        if ONLY_SKETCH in (old[2], new[2]):
            return self._judge_sketched(before, after, inherited)
        if old[2] or new[2] or old[0].shape != new[0].shape:
            return None
        change = (_minus(new[0], old[0]), _minus(new[1], old[1]))
        moved = _moved(change[0]), _moved(change[1])
        size = float(np.linalg.norm(new[0].astype(np.float64)))
        carried = float(np.linalg.norm(_minus(new[1], new[0]))) / size if size else 0.0
        if not np.isfinite(change[0]).all() or not np.isfinite(change[1]).all():
            return self._nonfinite(after, change, moved, inherited)
        sure, by_epsilon = self._sure(key, change[0].shape)
        if not sure.any():
            # A gradient that is all rounding leads an optimizer that divides by its size anywhere.
            sure, inherited = (
                np.ones(sure.shape, dtype=bool),
                1.0 if self._same_given else inherited,
            )
        mine, yours = change[0][sure], change[1][sure]
        metrics = measure(mine, yours, tolerance("float32"))
        unit = unit_roundoff(*(e.dtype for e in (*after.pair.reference, *after.pair.port)))
        own = 4.0 * unit * float(np.linalg.norm(np.abs(new[0][sure]) + np.abs(old[0][sure])))
        before_differs = before.metrics.difference_l2 if before.metrics is not None else 0.0
        allowance = _allowance(own, inherited, by_epsilon, metrics, before_differs)
        verdict = Verdict.MATCH
        if metrics.difference_l2 > allowance.l2:
            verdict = Verdict.DIVERGED
        elif metrics.relative_l2 > max(MATTERS, 2 * by_epsilon) and metrics.difference_l2 > own:
            verdict = Verdict.INHERITED
        reason = "" if sure.all() else f"{int((~sure).sum())} elements of unsure gradient left out"
        score = _score(metrics.difference_l2, allowance.l2)
        whole = _with_place(metrics, measure(change[0], change[1], tolerance("float32")))
        done = Comparison(after.pair, verdict, whole, allowance, score, reason)
        return Update(done, *moved, min(carried, 1.0))

    def _judge_sketched(
        self, before: Comparison, after: Comparison, inherited: float
    ) -> Update | None:
        """The same where a side is a sketch: nothing is known of single elements."""
        changes = sketched_changes(before.pair, after.pair, self._reference, self._port)
        if changes is None or after.metrics is None:
            return None
        moved = _other_bytes(before.pair.first, after.pair.first)
        moved_port = _other_bytes(before.pair.port[0], after.pair.port[0])
        carried = min(after.metrics.relative_l2, 1.0)
        if after.verdict is Verdict.NONFINITE:
            verdict = Verdict.INHERITED if inherited >= MATTERS else Verdict.NONFINITE
            return Update(replace(after, verdict=verdict), moved, moved_port, 1.0)
        key, metrics, own = after.pair.first.key, changes.metrics, changes.rounding
        by_epsilon = 0.0
        epsilon, given = self._epsilons.get(key.name), self._given(key, key.step)
        if epsilon is not None and given is not None and given.metrics is not None:
            size = given.metrics.reference_l2 / math.sqrt(max(1, given.metrics.count))
            by_epsilon = share_by_epsilon(epsilon, np.array([size]), key.step)
            # The elements that would be left out are part of the error bar.
            unknown = unsure_share(given.metrics.relative_l2) * metrics.reference_l2
            metrics = replace(metrics, error_l2=math.hypot(metrics.error_l2, unknown))
        before_differs = before.metrics.difference_l2 if before.metrics is not None else 0.0
        allowance = _allowance(own, inherited, by_epsilon, metrics, before_differs)
        matters = max(own, max(MATTERS, 2 * by_epsilon) * metrics.reference_l2)
        reason = unsure(metrics, (matters, allowance.l2), after.pair.first)
        verdict = Verdict.MATCH
        if metrics.difference_l2 > allowance.l2 and not reason:
            verdict = Verdict.DIVERGED
        elif metrics.difference_l2 > matters:
            verdict = Verdict.INHERITED
            if not reason:
                reason = single_elements(after.pair.first)
        score = _score(metrics.difference_l2, allowance.l2)
        done = Comparison(after.pair, verdict, metrics, allowance, score, reason)
        return Update(done, moved, moved_port, carried)

    def _nonfinite(
        self,
        after: Comparison,
        change: tuple[Floats, Floats],
        moved: tuple[bool, bool],
        inherited: float,
    ) -> Update:
        both = [not np.isfinite(one).all() for one in change]
        verdict = Verdict.MATCH if all(both) else Verdict.NONFINITE
        if verdict is Verdict.NONFINITE and inherited >= MATTERS:
            verdict = Verdict.INHERITED
        score = 0.0 if all(both) else math.inf
        done = Comparison(after.pair, verdict, after.metrics, after.allowance, score)
        return Update(done, *moved, 1.0)

    def _sure(self, key: EventKey, shape: tuple[int, ...]) -> tuple[NDArray[np.bool_], float]:
        """Elements whose gradients so far agree, and how far the place of epsilon may carry them."""
        sure = np.ones(shape, dtype=bool)
        by_epsilon = 0.0
        epsilon = self._epsilons.get(key.name)
        for step in range(1, key.step + 1):
            given = self._given(key, step)
            if given is None:
                continue
            left, right, problem = paired_values(given.pair, self._reference, self._port)
            if problem or left.shape != shape:
                continue
            size = np.abs(left.astype(np.float64))
            if self._same_given:
                # Such gradients tell no rule from where it adds its epsilon.
                exact = self._exact.get(key.name)
                if exact is not None:
                    sure &= size > exact[0] / _SURE
                left, right = self._of_autograd(key, step, left)
            with np.errstate(invalid="ignore"):
                differs = np.abs(_minus(right, left)) > _SURE * np.abs(left.astype(np.float64))
            sure &= ~differs
            if epsilon is not None and step == key.step:
                # The larger gradients tell an optimizer's rule from its epsilon.
                large = size >= np.quantile(size, 0.75) if size.size else sure
                if (sure & large).any():
                    sure &= large
                    by_epsilon = share_by_epsilon(epsilon, size[sure], step)
        return sure, by_epsilon

    def _of_autograd(
        self, key: EventKey, step: int, otherwise: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both sides' own gradients, one and the same where autograd's are not known."""
        known = EventKey(step, Phase.BACKWARD, Role.GRAD, key.name, rank=key.rank)
        found = self._comparisons.get(known)
        if found is None:
            return otherwise, otherwise
        left, right, problem = paired_values(found.pair, self._reference, self._port)
        return (otherwise, otherwise) if problem else (left, right)

    def _given(self, key: EventKey, step: int) -> Comparison | None:
        for phase, role in (
            (Phase.UPDATE, Role.GRAD_APPLIED),
            (Phase.BACKWARD, Role.GRAD),
        ):
            found = self._comparisons.get(EventKey(step, phase, role, key.name, rank=key.rank))
            if found is not None and found.metrics is not None:
                return found
        return None


def gradient_comparisons(comparisons: tuple[Comparison, ...]) -> dict[EventKey, Comparison]:
    """Comparisons of parameters and their gradients, by the first event's key without its micro-batch."""
    roles = (Role.PARAMETER, Role.GRAD, Role.GRAD_APPLIED)
    return {
        _at(c.pair.first.key, c.pair.first.key.phase, c.pair.first.key.role): c
        for c in comparisons
        if c.pair.first.key.role in roles
    }


def _allowance(
    own: float, inherited: float, by_epsilon: float, metrics: Metrics, before_differs: float
) -> Allowance:
    """How far two changes may lie apart.

    Args:
        own: the rounding of the values that were subtracted, as a norm.
        inherited: relative difference of the gradients.
        by_epsilon: share that another place of eps may make.
        metrics: of the changes.
        before_differs: ‖p - r‖ before the step.
    """
    through = (_GAIN * inherited + by_epsilon + MATTERS) * metrics.reference_l2
    words = "rounding of the values and of the gradients, and the place of epsilon"
    return Allowance(own + through + 1e-2 * before_differs, "modelled", words)


def _score(difference: float, allowed: float) -> float:
    if difference and not allowed:
        return math.inf
    return difference / allowed if allowed else 0.0


def _other_bytes(before: Event, after: Event) -> bool:
    return before.digest != after.digest


def _at(key: EventKey, phase: Phase, role: Role) -> EventKey:
    return EventKey(key.step, phase, role, key.name, rank=key.rank)


def _minus(left: NDArray[Any], right: NDArray[Any]) -> Floats:
    # Inf - Inf is NaN, which is looked for afterwards.
    with np.errstate(invalid="ignore"):
        return np.subtract(left, right, dtype=np.float64)


def _moved(change: Floats) -> bool:
    return bool(change.size) and bool(np.any(change))


def _with_place(kept: Metrics, whole: Metrics) -> Metrics:
    """The numbers of the kept elements, with the place of the worst of all."""
    return replace(
        kept,
        max_abs=whole.max_abs,
        max_index=whole.max_index,
        reference_at=whole.reference_at,
        port_at=whole.port_at,
        count=whole.count,
    )
