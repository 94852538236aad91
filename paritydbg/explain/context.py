"""What an explanation may look at: both runs, their alignment and every comparison, looked up by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Event, EventKey, Phase, Role
from paritydbg.model.finding import Finding
from paritydbg.model.pair import Alignment, EventPair
from paritydbg.model.record import LayerRecord, ParameterRecord, RunRecord
from paritydbg.model.source import EventSource

Floats = NDArray[np.float64]

# Beyond this a recalculation in float64 would cost more than it tells.
MOST_ELEMENTS = 1 << 23


@dataclass(frozen=True)
class Sides:
    """One pair's values: the reference's in the port's layout, and the port's, both float64."""

    reference: Floats
    port: Floats


@dataclass(frozen=True)
class Context:
    """Both runs and what was found so far.

    Attributes:
        reference, port: the two runs, open.
        alignment: their pairs.
        comparisons: every pair's numbers and verdict, in the reference's order of execution.
    """

    reference: EventSource
    port: EventSource
    alignment: Alignment
    comparisons: tuple[Comparison, ...]

    def layer(self, name: str) -> LayerRecord | None:
        """The reference's layer of that name."""
        return self._layers[0].get(name)

    def port_layer(self, name: str) -> LayerRecord | None:
        """The port's layer of that (its own) name."""
        return self._layers[1].get(name)

    def partner(self, name: str) -> LayerRecord | None:
        """The port's layer that stands for the reference's layer of that name."""
        found = self._partners.get(name)
        return None if found is None else self._layers[1].get(found)

    def layers_of(self, finding: Finding) -> tuple[LayerRecord | None, LayerRecord | None]:
        """The two layers that a finding is about, None where it is about none."""
        reference = self.owner(finding.place)
        if reference is None:
            return None, self._owner(finding.port_place, 1)
        return reference, self.partner(reference.name) or self._owner(finding.port_place, 1)

    def owner(self, place: str) -> LayerRecord | None:
        """The reference's layer that a place names, or that holds the parameter which it names."""
        return self._owner(place, 0)

    def parameter(self, name: str) -> ParameterRecord | None:
        """The reference's parameter or buffer of that name."""
        return self._parameters[0].get(name)

    def port_parameter(self, name: str) -> ParameterRecord | None:
        """The port's parameter or buffer of that (its own) name."""
        return self._parameters[1].get(name)

    def partners_of_parameter(self, name: str) -> tuple[str, ...]:
        """The port's names for the reference's parameter."""
        return self._parameter_partners.get(name, ())

    def comparisons_of(
        self, name: str, role: Role | None = None, step: int | None = None
    ) -> tuple[Comparison, ...]:
        """Comparisons whose reference event bears the name."""
        return tuple(
            c
            for c in self._by_name.get(name, ())
            if (role is None or c.pair.first.key.role is role)
            and (step is None or c.pair.first.key.step == step)
        )

    def of_role(self, role: Role, step: int | None = None) -> tuple[Comparison, ...]:
        """Comparisons of a role, of all steps or one."""
        return tuple(
            c for c in self._by_role.get(role, ()) if step is None or c.pair.first.key.step == step
        )

    def pair(self, name: str, role: Role, step: int, phase: Phase) -> EventPair | None:
        """The pair of a parameter's, buffer's or named tensor's values."""
        return self._held.get((name, role, step, phase))

    def sides(self, pair: EventPair | None) -> Sides | None:
        """A pair's values; None for no pair, for too many elements, and where layouts do not fit.

        None as well where only a sketch is stored: an explanation does without.
        """
        if pair is None or len(pair.port) != 1:
            return None
        if sum(event.nbytes for event in pair.port) > MOST_ELEMENTS * 8:
            return None
        if any(_elements(event) > MOST_ELEMENTS for event in (*pair.reference, *pair.port)):
            return None
        if not all(_usable(event) for event in (*pair.reference, *pair.port)):
            return None
        try:
            (reference,) = pair.transform.apply([self.reference.load(e) for e in pair.reference])
        except ValueError:
            return None
        port = self.port.load(pair.port[0])
        if reference.shape != port.shape:
            return None
        return Sides(_floats(reference), _floats(port))

    def raw(self, pair: EventPair | None) -> Sides | None:
        """A one-to-one pair's values each in its own layout; None as for ``sides``."""
        if pair is None or len(pair.port) != 1 or len(pair.reference) != 1:
            return None
        one, other = pair.reference[0], pair.port[0]
        if max(_elements(one), _elements(other)) > MOST_ELEMENTS:
            return None
        if not (_usable(one) and _usable(other)):
            return None
        return Sides(_floats(self.reference.load(one)), _floats(self.port.load(other)))

    def port_values(self, name: str, role: Role, step: int, phase: Phase) -> Floats | None:
        """The port's own values under its own name."""
        return self._own_values(1, name, role, step, phase)

    def reference_values(self, name: str, role: Role, step: int, phase: Phase) -> Floats | None:
        """The reference's values under its name."""
        return self._own_values(0, name, role, step, phase)

    def reference_event(self, event: Event) -> Floats | None:
        """The values of one of the reference's events."""
        return self._loaded(0, event)

    def port_event(self, event: Event) -> Floats | None:
        """The values of one of the port's events."""
        return self._loaded(1, event)

    def _own_values(
        self, side: int, name: str, role: Role, step: int, phase: Phase
    ) -> Floats | None:
        event = self._events[side].get((name, role, step, phase))
        return None if event is None else self._loaded(side, event)

    def _loaded(self, side: int, event: Event) -> Floats | None:
        if _elements(event) > MOST_ELEMENTS or not _usable(event):
            return None
        return _floats((self.reference, self.port)[side].load(event))

    def _owner(self, place: str, side: int) -> LayerRecord | None:
        layers = self._layers[side]
        name = layer_part(place)
        if name in layers:
            return layers[name]
        parameter = self._parameters[side].get(name)
        if parameter is not None:
            return layers.get(parameter.layer)
        return layers.get(name.rpartition(".")[0]) if "." in name else None

    @cached_property
    def _layers(self) -> tuple[dict[str, LayerRecord], dict[str, LayerRecord]]:
        return _named(self.reference.run), _named(self.port.run)

    @cached_property
    def _partners(self) -> dict[str, str]:
        return {pair.reference: pair.port for pair in self.alignment.layers}

    @cached_property
    def _parameters(self) -> tuple[dict[str, ParameterRecord], dict[str, ParameterRecord]]:
        return (
            {p.name: p for p in self.reference.run.parameters},
            {p.name: p for p in self.port.run.parameters},
        )

    @cached_property
    def _parameter_partners(self) -> dict[str, tuple[str, ...]]:
        return {name: pair.port for pair in self.alignment.parameters for name in pair.reference}

    @cached_property
    def _by_name(self) -> dict[str, list[Comparison]]:
        found: dict[str, list[Comparison]] = {}
        for comparison in self.comparisons:
            found.setdefault(comparison.pair.first.key.name, []).append(comparison)
        return found

    @cached_property
    def _by_role(self) -> dict[Role, list[Comparison]]:
        found: dict[Role, list[Comparison]] = {}
        for comparison in self.comparisons:
            found.setdefault(comparison.pair.first.key.role, []).append(comparison)
        return found

    @cached_property
    def _held(self) -> dict[tuple[str, Role, int, Phase], EventPair]:
        found: dict[tuple[str, Role, int, Phase], EventPair] = {}
        for pair in self.alignment.events:
            for event in pair.reference:
                found.setdefault(_spot(event.key), pair)
        return found

    @cached_property
    def _events(self) -> tuple[dict[tuple[str, Role, int, Phase], Event], ...]:
        return _first_events(self.reference.events), _first_events(self.port.events)


def layer_part(place: str) -> str:
    """The name in a place: ``before fc``, ``fc#2``, ``step1:fc.weight`` and ``(net)`` lose the rest."""
    for prefix in ("before ", "after "):
        place = place.removeprefix(prefix)
    head, colon, tail = place.partition(":")
    if colon and (head in ("inputs", "state") or head.removeprefix("step").isdigit()):
        place = tail
    return "" if place == "(net)" else place.split("#")[0]


def _named(run: RunRecord) -> dict[str, LayerRecord]:
    return {layer.name: layer for layer in run.layers}


def _first_events(events: Iterable[Event]) -> dict[tuple[str, Role, int, Phase], Event]:
    found: dict[tuple[str, Role, int, Phase], Event] = {}
    for event in events:
        found.setdefault(_spot(event.key), event)
    return found


def _spot(key: EventKey) -> tuple[str, Role, int, Phase]:
    return key.name, key.role, key.step, key.phase


def _elements(event: Event) -> int:
    count = 1
    for length in event.shape:
        count *= length
    return count


def _usable(event: Event) -> bool:
    """Whether the values are at hand, and are real numbers."""
    return event.has_values and not event.dtype.startswith(("complex", "str"))


def _floats(array: NDArray[np.generic]) -> Floats:
    return np.asarray(array, dtype=np.float64)
