"""Causes between gradients and optimizer: clipping, loss scale, accumulation, told by ratios of norms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from paritydbg.explain.causes.accumulation import accumulation_causes
from paritydbg.explain.causes.wiring import named_factor
from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause

_CLOSE = 2e-3


@dataclass(frozen=True)
class _Shares:
    """Per parameter: what the optimizer was given as a multiple of the gradient, on each side.

    Attributes:
        names: the parameters whose given gradient is a multiple of their gradient on both sides.
        reference, port: the multiples.
        norms: the port's gradient norms.
    """

    names: list[str]
    reference: list[float]
    port: list[float]
    norms: list[float]


def applied_causes(names: tuple[str, ...], context: Context, step: int) -> Iterable[Cause]:
    """Why what the optimizers were given differs though the gradients agree."""
    accumulated = tuple(accumulation_causes(names, context, step))
    yield from accumulated
    if accumulated:
        return
    shares = _shares(_all_given(context, step), context, step)
    if not shares.names:
        yield from _ratio(names, context, step)
        return
    mine, yours = _one(shares.reference), _one(shares.port)
    shown = (
        f"given = c · gradient: reference c {_range(shares.reference)}, port c "
        f"{_range(shares.port)} over {len(shares.names)} parameters"
    )
    if mine is not None and yours is None:
        clipped = _clipped_each(shares)
        yield Cause(
            "clip-per-tensor-vs-global" if clipped else "gradient-scaled-per-parameter",
            "the reference scales all gradients by one number, the port each by its own: it clips "
            "every tensor by its own norm; use ops.clip_by_global_norm"
            if clipped
            else "the port scales each gradient by another number",
            shown,
            0.95 if clipped else 0.6,
        )
    elif mine is None and yours is not None:
        yield Cause(
            "clip-per-tensor-vs-global",
            "the port scales all gradients by one number, the reference each by its own",
            shown,
            0.9,
        )
    elif mine is not None and yours is not None:
        yield _by_numbers(mine, yours, shown)


def _by_numbers(mine: float, yours: float, shown: str) -> Cause:
    """Both sides scale every gradient by one number each."""
    ratio = yours / mine
    if math.isclose(yours, 1.0, rel_tol=_CLOSE) and mine < 1 and not _power_of_two(mine):
        return Cause(
            "clip-missing",
            "the reference clips its gradients by their global norm, the port passes them on as they "
            "are",
            shown,
            0.95,
        )
    if _power_of_two(ratio) and abs(math.log2(ratio)) >= 3:
        removed = ratio > 1
        return Cause(
            "scale-not-removed" if removed else "scale-removed-twice",
            f"the port gives its optimizer {named_factor(ratio)} times the reference's gradients: the "
            f"loss scale is {'not taken out' if removed else 'taken out twice'}",
            shown,
            0.93,
        )
    if _power_of_two(mine) and abs(math.log2(mine)) >= 3 and not math.isclose(ratio, 1.0):
        return Cause(
            "clip-before-unscale",
            "the reference takes the loss scale out and then clips, the port clips the scaled "
            "gradients",
            shown,
            0.6,
        )
    return Cause(
        "clip-norm-differs",
        f"the port gives its optimizer {named_factor(ratio)} times what the reference gives: another "
        "bound for clipping, or a division that one side lacks",
        shown,
        0.8,
    )


def _clipped_each(shares: _Shares) -> bool:
    """Whether every gradient that the port shrank has one norm afterwards."""
    after = [n * c for n, c in zip(shares.norms, shares.port, strict=True) if c < 1 - _CLOSE]
    return len(after) > 1 and max(after) - min(after) <= 0.01 * max(after)


def _all_given(context: Context, step: int) -> tuple[str, ...]:
    return tuple(c.pair.first.key.name for c in context.of_role(Role.GRAD_APPLIED, step))


def _shares(names: tuple[str, ...], context: Context, step: int) -> _Shares:
    found = _Shares([], [], [], [])
    for name in names:
        gradient = _values(name, Role.GRAD, Phase.BACKWARD, context, step)
        given = _values(name, Role.GRAD_APPLIED, Phase.UPDATE, context, step)
        if gradient is None or given is None or gradient.port.shape != given.port.shape:
            continue
        mine = _multiple(gradient.reference, given.reference)
        yours = _multiple(gradient.port, given.port)
        if mine is not None and yours is not None:
            found.names.append(name)
            found.reference.append(mine)
            found.port.append(yours)
            found.norms.append(float(np.linalg.norm(gradient.port)))
    return found


def _values(name: str, role: Role, phase: Phase, context: Context, step: int) -> Sides | None:
    return context.sides(context.pair(name, role, step, phase))


def _multiple(gradient: Floats, given: Floats) -> float | None:
    """c where given = c · gradient, None where it is no multiple."""
    size = float(np.vdot(gradient, gradient))
    if not size or not np.isfinite(given).all() or not math.isfinite(size):
        return None
    c = float(np.vdot(gradient, given)) / size
    left = float(np.linalg.norm(given - c * gradient))
    return c if left <= 1e-3 * abs(c) * math.sqrt(size) else None


def _ratio(names: tuple[str, ...], context: Context, step: int) -> Iterator[Cause]:
    """Without gradients to hold them against: the ratio of what was given."""
    ratios = [
        c.metrics.ratio
        for name in names
        for c in context.comparisons_of(name, Role.GRAD_APPLIED, step)
        if c.metrics is not None and abs(c.metrics.cosine) > 1 - 1e-4
    ]
    one = _one(ratios)
    if one is not None:
        yield Cause(
            "gradient-scaled",
            f"the port's optimizer is given {named_factor(one)} times the reference's gradients",
            f"{len(ratios)} parameters, ratios {_range(ratios)}",
            0.7,
        )


def _one(values: list[float]) -> float | None:
    """The number that all of them are, None where they differ."""
    if not values or not all(math.isclose(v, values[0], rel_tol=_CLOSE) for v in values):
        return None
    return values[0]


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    if math.isclose(low, high, rel_tol=_CLOSE):
        return f"{low:.6g}"
    return f"{low:.4g} to {high:.4g}"


def _power_of_two(value: float) -> bool:
    if value <= 0:
        return False
    exponent = math.log2(value)
    return abs(exponent - round(exponent)) < 1e-3
