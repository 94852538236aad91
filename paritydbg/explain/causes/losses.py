"""Causes of losses that differ though the outputs agree: both numbers recomputed, or their ratio named."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from paritydbg.explain.causes.loss_forms import LossForm, loss_forms
from paritydbg.explain.causes.wiring import named_factor
from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.event import Role
from paritydbg.model.finding import Cause, Finding, Stage

_CLOSE = 2e-5
# Larger targets than this are not looked at: one loss is recomputed in many ways.
_MOST = 1 << 21


def loss_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What each side makes of the same outputs and targets."""
    if finding.stage is not Stage.LOSS or finding.evidence is None:
        return
    sides = context.sides(finding.evidence.pair)
    if sides is None or sides.port.size != 1:
        return
    mine, yours = float(sides.reference.reshape(())), float(sides.port.reshape(()))
    if not (math.isfinite(mine) and math.isfinite(yours)):
        return
    found = tuple(_recognised(mine, yours, context, finding.step))
    yield from found
    if not found:
        yield from _ratio(mine, yours, context, finding.step)


def _recognised(mine: float, yours: float, context: Context, step: int) -> Iterator[Cause]:
    tries = list(_tries(context, step))
    gap = abs(yours - mine)
    found = [
        (one, other, words)
        for words, forms in tries
        for one in _fitting(forms[0], mine, gap)
        for other in _fitting(forms[1], yours, gap)
    ]
    if not found:
        found = list(_in_sums(tries, mine, yours))
    if not found:
        return
    one, other, words = min(
        found, key=lambda f: f[0].simplicity + f[1].simplicity + 2 * _distance(f[0], f[1])
    )
    yield Cause(
        _slug(one, other),
        f"the reference's loss is {one.words}; the port's is {other.words}",
        f"recomputed in float64 from {words}: {one.value:.7g} for the reference, {other.value:.7g} "
        f"for the port, whose losses are {mine:.7g} and {yours:.7g}",
        0.93 if _distance(one, other) == 1 else 0.85,
    )


def _in_sums(
    tries: list[tuple[str, tuple[list[LossForm], list[LossForm]]]], mine: float, yours: float
) -> Iterator[tuple[LossForm, LossForm, str]]:
    """The loss as a sum of two, of which one is the usual one and the same on both sides."""
    gap = abs(yours - mine)
    for words, forms in tries:
        for other_words, others in tries:
            if other_words == words:
                continue
            for rest, port_rest in zip(*(_usual(side) for side in others), strict=False):
                if rest.words != port_rest.words:
                    continue
                for one in _fitting(forms[0], mine - rest.value, gap):
                    for other in _fitting(forms[1], yours - port_rest.value, gap):
                        if _distance(one, other) == 1:
                            yield one, other, f"{words}, beside {rest.words} of {other_words}"


def _usual(forms: list[LossForm]) -> list[LossForm]:
    return [form for form in forms if form.simplicity == 0 and form.settings["reduction"] == "mean"]


def _fitting(forms: list[LossForm], wanted: float, gap: float) -> list[LossForm]:
    allowed = min(_CLOSE * max(abs(wanted), 1e-6), 0.1 * gap)
    good = [form for form in forms if abs(form.value - wanted) <= allowed]
    return sorted(good, key=lambda form: form.simplicity)[:8]


def _distance(one: LossForm, other: LossForm) -> int:
    """In how many ways two forms differ."""
    differs = sum(one.settings.get(k) != other.settings.get(k) for k in one.settings)
    return differs + 2 * (one.kind != other.kind)


def _slug(one: LossForm, other: LossForm) -> str:
    kinds = {one.kind, other.kind}
    changed = {k for k in one.settings if one.settings[k] != other.settings.get(k)}
    if len(kinds) == 2:
        if kinds == {"squared", "half-squared"}:
            return "loss-reduction"
        if kinds <= {"smooth-l1", "huber", "absolute", "squared"}:
            return "smoothl1-beta" if kinds == {"smooth-l1", "huber"} else "loss-kind-differs"
        if kinds == {"bce", "bce-logits"}:
            return "logits-vs-probabilities"
        return "loss-kind-differs"
    if "smoothing" in changed:
        return "label-smoothing"
    if "reading" in changed:
        readings = f"{one.settings['reading']} {other.settings.get('reading', '')}"
        return "logits-vs-probabilities" if "softmax" not in readings else "double-softmax"
    reductions = {one.settings.get("reduction"), other.settings.get("reduction")}
    if "ignored" in changed or reductions == {"mean", "mean-all"}:
        return "loss-denominator-ignore-index"
    if "mean-of-means" in reductions:
        return "mean-of-means"
    if kinds == {"kl"}:
        return "kldiv-reduction"
    if kinds == {"smooth-l1"} and changed == {"variant"}:
        return "smoothl1-beta"
    return "loss-reduction"


def _tries(
    context: Context, step: int
) -> Iterator[tuple[str, tuple[list[LossForm], list[LossForm]]]]:
    """For each output and batch entry the forms on both sides."""
    targets = [
        (c, values)
        for c in context.of_role(Role.BATCH, step)
        if (values := context.raw(c.pair)) is not None and values.port.size <= _MOST
    ]
    for output, words in _outputs(context, step):
        for comparison, target in targets:
            whole = comparison.pair.first.dtype.startswith(("int", "uint", "bool"))
            if output.port.size > _MOST:
                continue
            yield (
                f"{words} and {comparison.pair.first.key.name}",
                (
                    list(loss_forms(output.reference, target.reference, whole)),
                    list(loss_forms(output.port, target.port, whole)),
                ),
            )


def _outputs(context: Context, step: int) -> Iterator[tuple[Sides, str]]:
    """The net's outputs, then those of the last layers."""
    found = list(context.comparisons_of("", Role.OUTPUT, step))
    others = [c for c in context.of_role(Role.OUTPUT, step) if c not in found]
    others.sort(key=lambda c: -c.pair.first.order)
    for comparison in (*found, *others[:3]):
        sides = context.sides(comparison.pair)
        if sides is not None:
            yield sides, f"the output of {comparison.pair.first.key.place}"


def _ratio(mine: float, yours: float, context: Context, step: int) -> Iterator[Cause]:
    """The losses' ratio is a number that belongs to the batch."""
    if not mine:
        return
    ratio = yours / mine
    for number, words in _numbers(context, step):
        for value, told in ((float(number), f"{number} times"), (1 / number, f"1/{number} of")):
            if math.isclose(ratio, value, rel_tol=1e-4):
                yield Cause(
                    "loss-reduction",
                    f"the port's loss is {told} the reference's, and {number} is {words}: one side "
                    "sums or divides where the other does not",
                    f"ratio {ratio:.7g}",
                    0.8,
                )
                return
    named = named_factor(ratio)
    if "/" in named or named.isdigit():
        yield Cause(
            "loss-reduction",
            f"the port's loss is {named} times the reference's",
            f"ratio {ratio:.7g}",
            0.5,
        )


def _numbers(context: Context, step: int) -> Iterator[tuple[int, str]]:
    """Sizes of the batch and of the outputs, with what they are."""
    seen: set[int] = set()
    for comparison in (
        *context.of_role(Role.BATCH, step),
        *context.comparisons_of("", Role.OUTPUT, step),
    ):
        key, shape = comparison.pair.first.key, comparison.pair.first.shape
        name = key.name or "the net's output"
        numbers = [(n, f"the length of axis {axis} of {name}") for axis, n in enumerate(shape)]
        numbers.append((math.prod(shape), f"the number of elements of {name}"))
        if len(shape) > 1:
            numbers.append((math.prod(shape[:2]), f"the number of positions of {name}"))
        for number, words in numbers:
            if number > 1 and number not in seen:
                seen.add(number)
                yield number, words
        values: Floats | None = (
            context.reference_values(key.name, key.role, step, key.phase)
            if comparison.pair.first.dtype.startswith(("int", "bool"))
            else None
        )
        if values is not None:
            kept = int(np.count_nonzero(values > 0))
            if kept > 1 and kept not in seen:
                seen.add(kept)
                yield kept, f"the number of positive entries of {name}"
