"""Differences that are no fault: what re-converges, and the same net written in another order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paritydbg.model.event import Phase, Role
from paritydbg.verdict.judge import MATTERS, Judged
from paritydbg.verdict.told import Told, agrees_within

# A difference re-converged where no more than this share of it reaches the end.
_GONE = 1e-2


def reparametrised(origins: Sequence[Judged], told: Told) -> bool:
    """Whether weights that differ hold the same values in another order, and the net gives the same.

    Hidden channels in another order are another way to write the same net.
    """
    found = initial(origins)
    if any(one.event.key.role is Role.BUFFER for one in found):
        return False
    if not all(one.comparison is not None and told.reordered(one.comparison) for one in found):
        return False
    ends = [
        one.comparison
        for one in told.free
        if one.comparison is not None
        and (
            one.event.key.role is Role.LOSS
            or (one.event.key.role is Role.OUTPUT and one.event.key.name == "")
        )
    ]
    return bool(ends) and all(agrees_within(end, MATTERS) for end in ends)


def harmless(one: Judged, told: Told) -> bool:
    """Whether a difference re-converged.

    Forward: the pass's loss, outputs and gradients all agree. Backward: all that a layer makes of the
    gradient agrees; a state that is handed on inside and given out as well has its gradient counted
    in one place or the other.
    """
    key = one.event.key
    judged = told.free
    if key.role is Role.GRAD_OUTPUT and not one.missing:
        return _goes_nowhere(one, told)
    if key.role not in (Role.INPUT, Role.OUTPUT) or key.name == "":
        return False
    ends = [
        other.comparison
        for other in judged
        if other.comparison is not None
        and other.event.key.step == key.step
        and other.event.key.micro == key.micro
        and (
            other.event.key.role in (Role.LOSS, Role.GRAD)
            or (other.event.key.role is Role.OUTPUT and other.event.key.name == "")
        )
    ]
    mine = one.comparison.metrics if one.comparison is not None else None
    left = _GONE * min(mine.relative_l2, 1.0) if mine is not None else _GONE
    return bool(ends) and all(agrees_within(end, min(left, MATTERS)) for end in ends)


def _goes_nowhere(one: Judged, told: Told) -> bool:
    key = one.event.key
    call = told.flow.call(one.event)
    made = [
        other.comparison
        for other in told.free
        if other.comparison is not None
        and (other.event.key.step, other.event.key.micro) == (key.step, key.micro)
        and (
            (
                other.event.key.role is Role.GRAD
                and told.flow.owner(other.event.key.name) == key.name
            )
            or (call is not None and other.event in call.grad_inputs)
        )
    ]
    return bool(made) and all(agrees_within(comparison, MATTERS) for comparison in made)


def initial(origins: Iterable[Judged]) -> list[Judged]:
    """Origins among values from before the first step."""
    return [
        one
        for one in origins
        if one.event.key.role in (Role.PARAMETER, Role.BUFFER)
        and one.event.key.phase is Phase.FORWARD
    ]
