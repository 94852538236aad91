"""A loss scale that one side uses and takes out again is no fault: gradients are compared without it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Phase, Role
from paritydbg.model.record import RunRecord

# Ratios of gradients that come of one scale agree to this share.
_ONE_RATIO = 1e-2
# What the optimizer was given agrees to this share once the scale is out.
_AGREES = 1e-3


@dataclass(frozen=True)
class LossScale:
    """One step's factor between the port's gradients and the reference's.

    Attributes:
        factor: port over reference.
        given_too: whether the optimizers were given scaled gradients and take the scale out.
    """

    factor: float
    given_too: bool

    def applies_to(self, comparison: Comparison) -> bool:
        """Whether a pair of events carries the factor."""
        key = comparison.pair.first.key
        return key.phase is Phase.BACKWARD or (self.given_too and key.role is Role.GRAD_APPLIED)


def loss_scales(
    compared: Sequence[Comparison], reference: RunRecord, port: RunRecord
) -> dict[int, LossScale]:
    """For each step in which all gradients differ by one factor that is out before the update."""
    told = {_loss_scale(run) for run in (reference, port)}
    found: dict[int, LossScale] = {}
    for step in sorted({c.pair.first.key.step for c in compared}):
        of_step = [c for c in compared if c.pair.first.key.step == step]
        factor = _one_ratio(c for c in of_step if c.pair.first.key.role is Role.GRAD)
        if factor is None or math.isclose(factor, 1.0, rel_tol=_ONE_RATIO):
            continue
        given = [c for c in of_step if c.pair.first.key.role is Role.GRAD_APPLIED]
        if given and all(c.metrics and c.metrics.relative_l2 <= _AGREES for c in given):
            found[step] = LossScale(factor, given_too=False)
        elif _one_ratio(given) is not None and any(
            math.isclose(scale, factor, rel_tol=_ONE_RATIO)
            or math.isclose(scale, 1.0 / factor, rel_tol=_ONE_RATIO)
            for scale in told
        ):
            found[step] = LossScale(factor, given_too=True)
    return found


def _one_ratio(comparisons: Iterable[Comparison]) -> float | None:
    """The ratio that nearly all gradients share, None where they do not."""
    ratios = [
        c.metrics.ratio
        for c in comparisons
        if c.metrics is not None and c.metrics.reference_l2 and abs(c.metrics.cosine) > 0.999
    ]
    if not ratios:
        return None
    middle = median(ratios)
    alike = sum(math.isclose(ratio, middle, rel_tol=_ONE_RATIO) for ratio in ratios)
    return middle if middle > 0 and alike >= 0.9 * len(ratios) else None


def _loss_scale(run: RunRecord) -> float:
    """The loss scale that an optimizer was told to take out, 1 without one."""
    for optimizer in run.optimizers:
        for group in optimizer.groups:
            scale = dict(group).get("loss_scale")
            if isinstance(scale, (int, float)) and scale:
                return float(scale)
    return 1.0
