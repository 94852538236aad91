"""Causes in state that a run carries along: averaged weights, learning rates, loss scales."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.rates import rate_causes
from paritydbg.explain.causes.site import LEFT, gap_of
from paritydbg.explain.context import Context, Floats, Sides, layer_part
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause, Finding, Stage

# More steps than this make the averages' weights too uncertain.
_MOST_STEPS = 64


def state_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What a state entry was made of."""
    if finding.stage is not Stage.STATE or finding.evidence is None:
        return
    name = layer_part(finding.place)
    if name.partition(".")[0] == "lr":
        yield from rate_causes(context, finding.step)
        return
    sides = context.sides(finding.evidence.pair)
    if sides is None or not gap_of(sides):
        return
    if "scale" in name and sides.port.size == 1:
        yield from _scale(sides)
        return
    yield from _average(finding, context, sides)


def _scale(sides: Sides) -> Iterator[Cause]:
    mine, yours = float(sides.reference.reshape(())), float(sides.port.reshape(()))
    yield Cause(
        "scale-schedule",
        "the loss scales went different ways: another first value, growth interval or factor",
        f"reference {mine:g}, port {yours:g}",
        0.85,
    )


def _average(finding: Finding, context: Context, sides: Sides) -> Iterator[Cause]:
    """A running average of a parameter: the decay of each step, solved from the values."""
    for name in _candidates(sides, context):
        path = _path(name, context, finding.step)
        if path is None:
            continue
        decays = tuple(
            _decays([getattr(p, side) for p in path], getattr(sides, side), gap_of(sides))
            for side in ("reference", "port")
        )
        mine, yours = decays
        if mine is None or yours is None:
            continue
        shown = (
            f"solved from {name} over {len(mine[0])} steps: decay per step in the reference "
            f"{_listed(mine[0])}, in the port {_listed(yours[0])} "
            f"({percent(max(mine[1], yours[1]))} of the difference left)"
        )
        yield _named(mine[0], yours[0], name, shown)
        return


def _named(mine: Floats, yours: Floats, name: str, shown: str) -> Cause:
    still = np.abs(yours) < 1e-3
    if still.all() and not (np.abs(mine) < 1e-3).all():
        return Cause(
            "ema-counter-integer",
            f"the port's average simply equals {name}: its decay stays 0, as a warm-up does whose "
            "counter is divided as a whole number; make the counter a float",
            shown,
            0.93,
        )
    if (np.abs(yours - 1) < 1e-4).all():
        return Cause("ema-not-updated", "the port's average was never updated", shown, 0.93)
    if len(mine) > 2 and np.allclose(mine[1:], yours[:-1], atol=2e-3) != np.allclose(
        mine[:-1], yours[1:], atol=2e-3
    ):
        return Cause("ema-decay", "the port's decay is that of another step", shown, 0.9)
    return Cause("ema-decay", "the two average with other decays", shown, 0.92)


def _candidates(sides: Sides, context: Context) -> list[str]:
    """Parameters of the state's shape whose path comes near its values."""
    found = []
    for parameter in context.reference.run.parameters:
        if not parameter.buffer and parameter.shape == sides.reference.shape:
            start = context.reference_values(parameter.name, Role.PARAMETER, 1, Phase.FORWARD)
            if start is not None and start.shape == sides.reference.shape:
                found.append((float(np.linalg.norm(start - sides.reference)), parameter.name))
    return [name for _, name in sorted(found)[:4]]


def _path(name: str, context: Context, step: int) -> list[Sides] | None:
    """The parameter before the first step and after every one."""
    if step > _MOST_STEPS:
        return None
    first = context.sides(context.pair(name, Role.PARAMETER, 1, Phase.FORWARD))
    later = [
        context.sides(context.pair(name, Role.PARAMETER, s, Phase.UPDATE))
        for s in range(1, step + 1)
    ]
    found = [p for p in (first, *later) if p is not None]
    return found if len(found) == step + 1 else None


def _decays(path: list[Floats], average: Floats, gap: float) -> tuple[Floats, float] | None:
    """The decay of each step with which the path leads to the average, and the share of the gap left.

    average = Σ w_t p_t with w_T = 1 - d_T, w_(T-1) = d_T (1 - d_(T-1)) …, Σ w_t = 1.
    """
    origin = path[0].reshape(-1)
    matrix = np.stack([p.reshape(-1) - origin for p in path[1:]], axis=1)
    wanted = average.reshape(-1) - origin
    weights, *_ = np.linalg.lstsq(matrix, wanted, rcond=None)
    left = float(np.linalg.norm(matrix @ weights - wanted)) / gap
    if left > LEFT:
        return None
    decays = []
    kept = 1.0
    for weight in weights[::-1]:
        share = weight / kept if abs(kept) > 1e-6 else 1.0
        decays.append(1 - share)
        kept *= 1 - share
    return np.array(decays[::-1]), left


def _listed(values: Floats) -> str:
    shown = ", ".join(f"{abs(v) if abs(v) < 5e-4 else v:.3f}" for v in values[:6])
    return shown + (" …" if len(values) > 6 else "")
