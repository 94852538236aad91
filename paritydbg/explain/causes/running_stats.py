"""Causes of running statistics that differ: momentum, its meaning, and the variance's divisor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.site import LEFT, gap_of
from paritydbg.explain.causes.weights_of import canonical
from paritydbg.explain.context import Context, Sides
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause, Finding, Stage


def running_stats_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """How far each side moved its statistics towards those of the batch."""
    if finding.stage is not Stage.RUNNING_STATS or finding.evidence is None:
        return
    new = context.sides(finding.evidence.pair)
    key = finding.evidence.pair.first.key
    old = context.sides(context.pair(key.name, Role.BUFFER, key.step, Phase.FORWARD))
    if new is None or old is None or new.port.shape != old.port.shape:
        return
    gap = gap_of(new)
    if not gap:
        return
    moved = Sides(new.reference - old.reference, new.port - old.port)
    size = float(np.vdot(moved.reference, moved.reference))
    if not size:
        yield Cause(
            "eval-mode-not-set",
            "the port moves its running statistics where the reference keeps them",
            "the reference's did not change in the step",
            0.8,
        )
        return
    if not moved.port.any():
        yield Cause(
            "train-mode-not-set",
            "the port's running statistics do not move: the layer is in eval mode, or "
            "use_batch_statistics is False",
            "the port's did not change in the step, bit for bit",
            0.85,
        )
        return
    ratio = float(np.vdot(moved.reference, moved.port)) / size
    left = float(np.linalg.norm(moved.port - ratio * moved.reference)) / gap
    if left <= LEFT:
        yield _by_ratio(finding, context, ratio, left)
    else:
        yield from _biased(finding, context, old, moved, gap)


def _momentum(finding: Finding, context: Context) -> float:
    layer = context.owner(finding.place)
    value = layer.attribute("momentum") if layer is not None else None
    return float(value) if isinstance(value, (int, float)) else 0.1


def _by_ratio(finding: Finding, context: Context, ratio: float, left: float) -> Cause:
    """The port moves in the reference's direction, another length."""
    momentum = _momentum(finding, context)
    used = ratio * momentum
    shown = (
        f"new = old + m · (batch - old): the reference's m is {momentum:.4g}, the port's "
        f"{used:.4g} ({percent(left)} of the difference left)"
    )
    if math.isclose(used, 1 - momentum, rel_tol=0.02):
        return Cause(
            "bn-momentum-convention",
            f"the port's momentum is one minus what it should be: mindspore.nn's momentum keeps the "
            f"old value, torch's takes the new one; write momentum={1 - momentum:.4g}",
            shown,
            0.97,
        )
    count = _count(finding, context)
    if canonical(finding.place) == "running_var" and count > 1:
        for biased, words in (((count - 1) / count, "n"), (count / (count - 1), "n - 1")):
            if math.isclose(ratio, biased, rel_tol=1e-3):
                return Cause(
                    "bn-running-var-biased", f"the port's variance divides by {words}", shown, 0.8
                )
    calls = round(math.log(max(1e-9, 1 - used)) / math.log(1 - momentum)) if used < 1 else 0
    if calls > 1 and math.isclose(used, 1 - (1 - momentum) ** calls, rel_tol=1e-3):
        return Cause(
            "running-stats-updated-twice",
            f"the port moves its statistics as {calls} calls of the layer would",
            shown,
            0.85,
        )
    return Cause(
        "bn-momentum-convention", "the two move their statistics at another pace", shown, 0.8
    )


def _biased(
    finding: Finding, context: Context, old: Sides, moved: Sides, gap: float
) -> Iterator[Cause]:
    """The port's batch variance is the reference's times (n - 1) / n, or the other way round."""
    if canonical(finding.place) != "running_var":
        return
    count, momentum = _count(finding, context), _momentum(finding, context)
    if count < 2 or not momentum:
        return
    batch = old.reference + moved.reference / momentum
    for factor, words in (
        ((count - 1) / count, "by n, the reference's by n - 1"),
        (count / (count - 1), "by n - 1, the reference's by n"),
    ):
        expected = momentum * (factor * batch - old.port)
        left = float(np.linalg.norm(moved.port - expected)) / gap
        if left <= LEFT:
            yield Cause(
                "bn-running-var-biased",
                f"the port's batch variance is divided {words}",
                f"batch variance times {factor:.6g} (n = {count}) gives the port's value "
                f"({percent(left)} of the difference left)",
                round(0.95 - 0.5 * left, 3),
            )
            return


def _count(finding: Finding, context: Context) -> int:
    """Elements per channel of what the layer was fed in that step."""
    layer = context.owner(finding.place)
    if layer is None:
        return 0
    for comparison in context.comparisons_of(layer.name, Role.INPUT, finding.step):
        shape = comparison.pair.first.shape
        if len(shape) > 1:
            return math.prod(shape) // shape[1]
    return 0
