"""The values of a forced replay, as a port's hooks ask for them; how hooks put them in is theirs.

A plan says which of the reference's tensors stands in for which; the values stay in the reference's
dump until they are asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.dump.reader import open_dump
from paritydbg.dump.schema import key_of
from paritydbg.errors import DumpError
from paritydbg.measure.precision import unit_roundoff
from paritydbg.model.event import Event, EventKey, Role, Values
from paritydbg.model.forcing import ForcingPlan, Given
from paritydbg.model.record import Environment, NoiseRecord, RunRecord
from paritydbg.model.source import EventSource
from paritydbg.model.transform import Transform

# The setting that tells a dump of a forced replay, whose gradients of inputs are each layer's own.
SETTING = "forced_replay"
# The setting that tells a replay that computed in float64.
PROMOTED = "float64_replay"
# Rounding moves nothing further than this many units of its norm, nor this many times what moved
# inputs do: float64 was then another computation, for instance one with other random numbers.
_MOST_UNITS = 1e4
_MOST_SPREADS = 1e3


class Forcing:
    """A forced replay that goes on.

    Args:
        plan: what stands in for what.
        reference: the dump of the plan, open.
        perturbed: seed of a last-bit perturbation: every float that is given is multiplied by
            1 + {-1, 0, 1} times its dtype's spacing, drawn anew per tensor; 0 for none.
        moved: perturbed replays of the same run, from which the spread of each tensor is told, and
            replays in float64, from which its error is.
        promoted: whether everything is computed in float64.
        scaled: what the inputs of the reference's leaves are multiplied by, 0 to leave them: small
            inputs show an epsilon that is lost in rounding beside ordinary ones.
    """

    def __init__(
        self,
        plan: ForcingPlan,
        reference: EventSource,
        perturbed: int = 0,
        moved: Sequence[EventSource] = (),
        promoted: bool = False,
        scaled: float = 0.0,
    ) -> None:
        self.promoted = promoted
        self._scaled = scaled
        self._leaves = {layer.name for layer in reference.run.layers if layer.leaf}
        self._given = plan.given
        self._reference = reference
        self._events = {event.order: event for event in reference.events}
        self._perturbed = perturbed
        known = [(source, {e.key: e for e in source.events}) for source in moved]
        self._moved = [one for one in known if not is_promoted(one[0].run)]
        self._exact = [one for one in known if is_promoted(one[0].run)]

    @property
    def environment(self) -> Environment:
        """Of the run whose values are given."""
        return self._reference.run.environment

    def __contains__(self, key: EventKey) -> bool:
        return key in self._given

    def value(self, key: EventKey, shape: tuple[int, ...]) -> NDArray[Any] | None:
        """The reference's values for a tensor, None where it has none of that shape."""
        given = self._given.get(key)
        if given is None:
            return None
        try:
            events = [self._events[order] for order in given.orders]
            arrays = given.transform.apply([self._loaded(event) for event in events])
            array = arrays[given.position]
        except (KeyError, IndexError, ValueError):
            return None
        if array.shape != shape:
            return None
        shrinks = self._scaled and key.role is Role.INPUT and array.dtype.kind == "f"
        if shrinks and all(event.key.name in self._leaves for event in events):
            array = array * array.dtype.type(self._scaled)
        return np.array(array, order="C")

    def noise(self, key: EventKey, values: Values) -> NoiseRecord | None:
        """How far a tensor lies from the same one of the perturbed and float64 replays.

        None without any, and where it is not made of finite floats.
        """
        if not self._moved and not self._exact:
            return None
        mine = values.decoded()
        if mine.dtype.kind != "f":
            return None
        spreads = _distances(self._moved, key, mine)
        exact = max(_distances(self._exact, key, mine), default=None)
        spread = max(spreads, default=None)
        if exact is not None:
            unit = _MOST_UNITS * unit_roundoff(values.dtype) * float(np.linalg.norm(mine))
            if not exact <= max(unit, _MOST_SPREADS * (spread or 0.0)):
                exact = None
        if (spread is None and exact is None) or not np.isfinite(spread or 0.0):
            return None
        return NoiseRecord.of(key, spread=spread, runs=len(spreads), exact=exact)

    def held(self, step: int, own: Collection[str], prefix: str = "") -> dict[str, NDArray[Any]]:
        """The reference's parameters and buffers from before a step, by the port's names.

        Args:
            own: names of the net's parameters and buffers; others belong to another net.
            prefix: of the net among several, which names lose.
        """
        start = f"{prefix}." if prefix else ""
        found: dict[str, NDArray[Any]] = {}
        for key, given in self._given.items():
            if key.role not in (Role.PARAMETER, Role.BUFFER) or key.step != step:
                continue
            events = [self._events[order] for order in given.orders if order in self._events]
            name = key.name.removeprefix(start) if key.name.startswith(start) else ""
            if len(events) == len(given.orders) and name in own:
                arrays = given.transform.apply([self._reference.load(event) for event in events])
                found[name] = np.array(arrays[given.position], order="C")
        return found

    def _loaded(self, event: Event) -> NDArray[Any]:
        array = self._reference.load(event)
        spacing = 2.0 * unit_roundoff(event.dtype)
        if not self._perturbed or not spacing or array.dtype.kind != "f":
            return array
        # One draw per tensor and run, whatever order the hooks ask in.
        draw = np.random.default_rng((self._perturbed, event.order))
        wide: type[Any] = np.float64 if array.dtype == np.float64 else np.float32
        factors = draw.integers(-1, 2, size=array.shape, dtype=np.int8).astype(wide)
        moved: NDArray[Any] = array.astype(wide) * (1 + factors * wide(spacing))
        return moved.astype(array.dtype)


def is_forced(run: RunRecord) -> bool:
    """Whether a run was a forced replay."""
    return dict(run.environment.settings).get(SETTING) is True


def is_promoted(run: RunRecord) -> bool:
    """Whether a run computed in float64 what its script computes in less."""
    return dict(run.environment.settings).get(PROMOTED) is True


_Known = tuple[EventSource, Mapping[EventKey, Event]]


def _distances(known: Sequence[_Known], key: EventKey, mine: NDArray[Any]) -> list[float]:
    """‖x_k - x‖ for each run that has the tensor in this shape."""
    found = []
    for source, events in known:
        event = events.get(key)
        if event is not None and event.shape == mine.shape:
            difference = source.load(event).astype(np.float64) - mine
            found.append(float(np.linalg.norm(difference)))
    return found


def write_plan(plan: ForcingPlan, path: str) -> None:
    """Write a plan for the process that will carry it out."""
    lines = [
        [asdict(key), list(given.orders), asdict(given.transform), given.position]
        for key, given in plan.given.items()
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"reference": os.path.abspath(plan.reference), "given": lines}, file)


def read_plan(path: str) -> ForcingPlan:
    """The plan that `write_plan` wrote.

    Raises:
        DumpError: the file cannot be read, or is no plan.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = json.load(file)
        given = {
            key_of(fields): Given(tuple(orders), _transform(transform), position)
            for fields, orders, transform, position in text["given"]
        }
        return ForcingPlan(text["reference"], given)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DumpError(f"{path} is no plan of a forced replay: {error}") from error


def start(
    plan: ForcingPlan,
    perturbed: int = 0,
    moved: Sequence[str] = (),
    promoted: bool = False,
    scaled: float = 0.0,
) -> Forcing:
    """A forced replay with its reference, and the replays that tell noise if there are any, opened.

    Raises:
        DumpError: the reference's dump cannot be read.
    """
    others = [open_dump(path) for path in moved]
    return Forcing(plan, open_dump(plan.reference), perturbed, others, promoted, scaled)


def _transform(fields: Mapping[str, Any]) -> Transform:
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return Transform(**known)
