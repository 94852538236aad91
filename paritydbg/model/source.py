"""The reading side that comparing steps need: a dump, or anything that behaves like one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from paritydbg.model.event import Event
from paritydbg.model.record import RunRecord

if TYPE_CHECKING:
    from paritydbg.measure.sketch import Sketch


class EventSource(Protocol):
    """A captured run: its records, its events in order, and their values on demand."""

    @property
    def path(self) -> str:
        """Where it lies, as the user named it."""

    @property
    def run(self) -> RunRecord:
        """Layers, parameters, optimizers and environment."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Every captured tensor in order of execution."""

    def load(self, event: Event) -> NDArray[Any]:
        """The event's values; bfloat16 comes as float32, every other dtype as it is.

        Raises:
            SketchOnlyError: only a sketch of them is stored (`Event.has_values` tells).
        """

    def load_sketch(self, event: Event) -> Sketch:
        """The event's sketch, worked out from the values where these are stored."""
