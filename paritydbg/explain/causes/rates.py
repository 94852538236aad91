"""Causes in learning rates: the two schedules side by side, and whether one is the other shifted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from paritydbg.explain.causes.trajectories import learning_rates
from paritydbg.explain.context import Context
from paritydbg.model.finding import Cause


def rate_causes(context: Context, step: int) -> Iterable[Cause]:
    """Why the learning rates of a step differ; nothing where they agree or are not known."""
    here = learning_rates(context, step)
    if not here[0] or not here[1] or _same(here[0], here[1]):
        return
    steps = sorted({event.key.step for event in context.reference.events})
    schedules = [tuple(learning_rates(context, s)[side][:1] for s in steps) for side in (0, 1)]
    mine = [rates[0] for rates in schedules[0] if rates]
    yours = [rates[0] for rates in schedules[1] if rates]
    shown = f"steps {steps[0]}-{steps[-1]}: reference {_listed(mine)}, port {_listed(yours)}"
    if len(here[0]) != len(here[1]) or len(mine) != len(yours):
        yield _differs(here, shown)
        return
    yield from _shifted(mine, yours, shown) or (_other(mine, yours, here, shown),)


def implied_rate(ratio: float, context: Context, step: int) -> Iterable[Cause]:
    """A schedule that is off, where the port's rate is known only by the ratio of the two changes."""
    here = learning_rates(context, step)[0][:1]
    for shift in (1, -1, 2, -2):
        there = learning_rates(context, step + shift)[0][:1]
        if not here or not there or not here[0] or _close(here[0], there[0]):
            continue
        if math.isclose(ratio, there[0] / here[0], rel_tol=5e-3):
            yield Cause(
                "lr-schedule-off-by-one",
                f"the port moves as with the reference's learning rate of step {step + shift}",
                f"the port's changes are {ratio:.5g} times the reference's, whose rates are "
                f"{here[0]:.6g} in step {step} and {there[0]:.6g} in step {step + shift}",
                0.85,
            )
            return


def _shifted(mine: list[float], yours: list[float], shown: str) -> tuple[Cause, ...]:
    """One schedule is the other, a step or two later."""
    if len(mine) < 2 or len({round(rate, 12) for rate in mine + yours}) < 2:
        return ()
    for shift in (1, 2):
        for late, early, words in (
            (yours, mine, "behind"),
            (mine, yours, "ahead of"),
        ):
            pairs = list(zip(late[shift:], early[: len(early) - shift], strict=True))
            if pairs and all(_close(a, b) for a, b in pairs) and _varies(early):
                steps = "one step" if shift == 1 else f"{shift} steps"
                return (
                    Cause(
                        "lr-schedule-off-by-one",
                        f"the port's learning rate is {steps} {words} the reference's: the "
                        "schedule is counted from another number, or stepped at another moment",
                        shown,
                        0.95 if len(pairs) > 1 else 0.85,
                    ),
                )
    return ()


def _varies(rates: list[float]) -> bool:
    return len(rates) < 3 or not all(_close(rate, rates[0]) for rate in rates)


def _other(
    mine: list[float],
    yours: list[float],
    here: tuple[tuple[float, ...], tuple[float, ...]],
    shown: str,
) -> Cause:
    constant = all(_close(rate, yours[0]) for rate in yours)
    rising = len(mine) > 1 and all(
        a < b or _close(a, b) for a, b in zip(mine, mine[1:], strict=False)
    )
    if constant and rising and not _close(mine[0], mine[-1]):
        return Cause(
            "warmup-missing",
            "the reference's learning rate rises over the steps, the port's stays as it is",
            shown,
            0.93,
        )
    if constant and not all(_close(rate, mine[0]) for rate in mine):
        return Cause(
            "lr-schedule-missing",
            "the reference's learning rate changes over the steps, the port's stays as it is",
            shown,
            0.9,
        )
    return _differs(here, shown)


def _differs(here: tuple[tuple[float, ...], tuple[float, ...]], shown: str) -> Cause:
    return Cause("learning-rate", "the two use another learning rate", shown, 0.9)


def _same(one: Iterable[float], other: Iterable[float]) -> bool:
    left, right = tuple(one), tuple(other)
    if len(set(left)) == len(set(right)) == 1:
        return _close(left[0], right[0])
    return len(left) == len(right) and all(_close(a, b) for a, b in zip(left, right, strict=True))


def _close(one: float, other: float) -> bool:
    # Rates pass through float32 on one side.
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12)


def _listed(rates: list[float]) -> str:
    parts: Iterator[str] = (f"{rate:.6g}" for rate in rates[:5])
    return ", ".join(parts) + (" …" if len(rates) > 5 else "")
