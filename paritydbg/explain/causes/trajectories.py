"""One parameter through the steps of a run: before, gradient given, after; few elements stand for all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.event import Phase, Role

_ENOUGH = 1 << 14
# Parameters that are recalculated, of all that a finding names.
_MOST = 8


@dataclass(frozen=True)
class Trajectory:
    """A parameter on both sides, from step 1 to the finding's.

    Attributes:
        name: the reference's.
        port_name: the port's.
        before, given: per step the values before it and the gradient that the optimizer was given.
        moved: the change of the last step.
        gap: ‖port's change - reference's change‖.
        rates: the reference's and the port's learning rate of the last step, None where unknown.
    """

    name: str
    port_name: str
    before: tuple[Sides, ...]
    given: tuple[Sides, ...]
    moved: Sides
    gap: float


def trajectories(names: tuple[str, ...], context: Context, step: int) -> Iterator[Trajectory]:
    """The trajectories of some parameters; those that cannot be followed are left out."""
    spread = sorted(names, key=lambda name: _kind(name, context))
    found = 0
    for name in spread:
        one = _trajectory(name, context, step)
        if one is not None:
            yield one
            found += 1
        if found == _MOST:
            return


def _kind(name: str, context: Context) -> int:
    """Weights and one-dimensional parameters in turn, so that both are among the first."""
    record = context.parameter(name)
    same = [
        p.name
        for p in context.reference.run.parameters
        if record is not None and (len(p.shape) > 1) == (len(record.shape) > 1)
    ]
    return same.index(name) if name in same else len(same)


def _trajectory(name: str, context: Context, step: int) -> Trajectory | None:
    steps = range(1, step + 1)
    before = [_values(name, Role.PARAMETER, Phase.FORWARD, s, context) for s in steps]
    given = [given_gradient(name, s, context) for s in steps]
    after = _values(name, Role.PARAMETER, Phase.UPDATE, step, context)
    whole = [v for v in (*before, *given, after) if v is not None]
    if len(whole) != 2 * step + 1 or after is None:
        return None
    if len({v.port.shape for v in whole}) > 1:
        return None
    index = _chosen(whole[step - 1], after)
    cut = [Sides(v.reference.reshape(-1)[index], v.port.reshape(-1)[index]) for v in whole]
    if not all(np.isfinite(v.reference).all() and np.isfinite(v.port).all() for v in cut):
        return None
    last = cut[step - 1]
    moved = Sides(cut[-1].reference - last.reference, cut[-1].port - last.port)
    gap = float(np.linalg.norm(moved.port - moved.reference))
    partners = context.partners_of_parameter(name)
    return Trajectory(
        name, partners[0] if partners else "", tuple(cut[:step]), tuple(cut[step:-1]), moved, gap
    )


def given_gradient(name: str, step: int, context: Context) -> Sides | None:
    """What both optimizers were given for a parameter, else its gradient."""
    applied = _values(name, Role.GRAD_APPLIED, Phase.UPDATE, step, context)
    return applied or _values(name, Role.GRAD, Phase.BACKWARD, step, context)


def _values(name: str, role: Role, phase: Phase, step: int, context: Context) -> Sides | None:
    return context.sides(context.pair(name, role, step, phase))


def _chosen(before: Sides, after: Sides) -> NDArray[np.intp]:
    size = after.port.size
    if size <= _ENOUGH:
        return np.arange(size)
    change = (after.port - before.port) - (after.reference - before.reference)
    largest = np.argpartition(-np.abs(change.reshape(-1)), _ENOUGH // 2)[: _ENOUGH // 2]
    spread = np.linspace(0, size - 1, _ENOUGH // 2, dtype=np.intp)
    return np.asarray(np.unique(np.concatenate([largest, spread])))


def rounding(trajectory: Trajectory) -> float:
    """What the port's float32 values after a step add to their difference to those before it."""
    return 2.0**-24 * float(np.linalg.norm(trajectory.before[-1].port))


def learning_rates(context: Context, step: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Both sides' recorded learning rates of a step, one per group."""
    return _rates(context, step, of_port=False), _rates(context, step, of_port=True)


def _rates(context: Context, step: int, of_port: bool) -> tuple[float, ...]:
    source = context.port if of_port else context.reference
    found: list[float] = []
    seen: set[str] = set()
    for event in source.events:
        key = event.key
        base = key.name.partition(".")[0]
        known = event.has_values and key.name not in seen
        if key.role is Role.STATE and base == "lr" and key.step == step and known:
            seen.add(key.name)
            value: Floats = np.asarray(source.load(event), np.float64)
            if value.size == 1 and math.isfinite(float(value.reshape(()))):
                found.append(float(value.reshape(())))
    return tuple(found)
