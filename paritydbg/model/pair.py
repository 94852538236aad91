"""Which part of the port stands for which part of the reference, how that was found, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paritydbg.model.event import Event
from paritydbg.model.transform import IDENTITY, Transform

# From the surest to the least sure; the order in which alignment tries them.
How = Literal["map", "name", "rule", "value", "sequence", "derived"]
Side = Literal["reference", "port"]


@dataclass(frozen=True)
class LayerPair:
    """Two layers that stand for each other.

    Attributes:
        reference, port: dotted layer names; ``""`` is the net itself.
        how: the user's map, the exact name, a rename rule, parameter values, the sequence of
            execution, or derived from other pairs (a parent from its children).
        confidence: 0 to 1.
    """

    reference: str
    port: str
    how: How
    confidence: float


@dataclass(frozen=True)
class ParameterPair:
    """A group of the reference's parameters (or buffers) and the port's group that stands for it."""

    reference: tuple[str, ...]
    port: tuple[str, ...]
    transform: Transform
    how: How
    confidence: float


@dataclass(frozen=True)
class EventPair:
    """A group of the reference's events and the port's group that stands for it.

    ``transform.apply`` of the reference's arrays gives as many arrays as the port has events.
    """

    reference: tuple[Event, ...]
    port: tuple[Event, ...]
    transform: Transform = IDENTITY
    how: How = "name"
    confidence: float = 1.0

    @property
    def first(self) -> Event:
        """The reference's first event, whose key names the pair."""
        return self.reference[0]


@dataclass(frozen=True)
class Unpaired:
    """An event that only one side has, and why no partner was found."""

    side: Side
    event: Event
    reason: str


@dataclass(frozen=True)
class Alignment:
    """The whole correspondence of two dumps.

    Attributes:
        layers, parameters, events: the pairs; events in the reference's order of execution.
        unpaired: events of either side without a partner.
        lone_reference, lone_port: names of layers without a partner.
        lone_reference_parameters, lone_port_parameters: names of parameters without a partner.
        moved: names (reference's) of paired layers that run in another order in the port.
    """

    layers: tuple[LayerPair, ...]
    parameters: tuple[ParameterPair, ...]
    events: tuple[EventPair, ...]
    unpaired: tuple[Unpaired, ...] = ()
    lone_reference: tuple[str, ...] = ()
    lone_port: tuple[str, ...] = ()
    lone_reference_parameters: tuple[str, ...] = ()
    lone_port_parameters: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
