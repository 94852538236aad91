"""Causes of NaN gradients: roots and logarithms at the edge of where they are defined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause, Finding

_MATE = {Role.GRAD_INPUT: Role.INPUT, Role.GRAD_OUTPUT: Role.OUTPUT}


def singularity_causes(finding: Finding, context: Context, sides: Sides) -> Iterable[Cause]:
    """Where NaN or Inf appears on one side, and what the forward value is at those elements."""
    lost = ~np.isfinite(sides.reference), ~np.isfinite(sides.port)
    wrong = lost[1] & ~lost[0]
    side = "port"
    if not wrong.any():
        wrong, side = lost[0] & ~lost[1], "reference"
    if not wrong.any():
        return
    for words, value in _forward_values(finding, context):
        if value.shape == wrong.shape:
            found = tuple(_by_value(wrong, value, words, side))
            yield from found
            if found:
                return
    other = sides.reference if side == "port" else sides.port
    if not other[wrong].any():
        yield Cause(
            "where-after-log-nan-gradient",
            f"the {side} masks the result of a log, root or division after taking it: where() passes "
            "a zero gradient on, and zero times infinity is NaN; mask the argument instead",
            f"{int(wrong.sum())} elements are not finite, and at every one of them the other side's "
            "gradient is exactly 0",
            0.8,
        )
        return
    if finding.evidence is not None and finding.evidence.pair.first.key.role is Role.GRAD:
        yield from _of_parameter(finding, context, side)


def _by_value(wrong: NDArray[np.bool_], value: Floats, words: str, side: str) -> Iterator[Cause]:
    count = int(wrong.sum())
    rows = wrong.any(axis=-1)
    zero_rows = ~value.any(axis=-1) if value.ndim > 1 else np.zeros(0, dtype=bool)
    if value.ndim > 1 and zero_rows.any() and not (rows & ~zero_rows).any():
        yield _norm_at_zero(
            side, f"{count} elements are not finite, all in rows where {words} is 0"
        )
        return
    at = value[wrong]
    if (at == 0).all():
        yield _norm_at_zero(
            side, f"{count} elements are not finite, all where {words} is exactly 0"
        )
    if (at <= 0).all() and not wrong[value > 0].any():
        yield Cause(
            "where-after-log-nan-gradient",
            f"the {side} masks the result of a log, root or division after taking it: where() passes "
            "a zero gradient on, and zero times infinity is NaN; mask the argument instead",
            f"{count} elements are not finite, all where {words} is at most 0; none where it is "
            "positive",
            0.75 if (at == 0).all() else 0.9,
        )


def _norm_at_zero(side: str, evidence: str) -> Cause:
    return Cause(
        "norm-gradient-at-zero-nan",
        f"the gradient of a norm (a root of a sum of squares) at zero is NaN in the {side}, where "
        "the other side takes 0; add a small number under the root, or mask the argument",
        evidence,
        0.85,
    )


def _of_parameter(finding: Finding, context: Context, side: str) -> Iterator[Cause]:
    """A parameter's gradient sums over samples: the layer's output tells which of them is at an edge."""
    owner = context.owner(finding.place)
    for comparison in context.comparisons_of(
        owner.name if owner else "", Role.OUTPUT, finding.step
    ):
        values = context.sides(comparison.pair)
        if values is None:
            continue
        output = values.port
        rows = int((~output.any(axis=-1)).sum()) if output.ndim > 1 else 0
        place = comparison.pair.first.key.place
        if rows:
            yield _norm_at_zero(side, f"{rows} rows of the output of {place} are 0 throughout")
        elif (output <= 0).any():
            share = float((output <= 0).mean())
            yield Cause(
                "where-after-log-nan-gradient",
                f"the {side} takes a log, root or division of values where it has no gradient and "
                "masks the result; mask the argument instead",
                f"{share:.0%} of the output of {place} is at most 0",
                0.6,
            )


def _forward_values(finding: Finding, context: Context) -> Iterator[tuple[str, Floats]]:
    """The tensor whose gradient the finding is about."""
    evidence = finding.evidence
    if evidence is None:
        return
    key = evidence.pair.first.key
    role = _MATE.get(key.role)
    for comparison in context.comparisons_of(key.name, role, key.step) if role else ():
        other = comparison.pair.first.key
        if other.call == key.call and other.slot == key.slot and other.phase is Phase.FORWARD:
            values = context.sides(comparison.pair)
            if values is not None:
                yield f"the {other.role.value} of {other.place}", values.port
    if key.role is Role.GRAD:
        parameter = context.pair(key.name, Role.PARAMETER, key.step, Phase.FORWARD)
        values = context.sides(parameter)
        if values is not None and (values.port == 0).any():
            yield f"{key.name}", values.port
