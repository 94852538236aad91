"""Gives a port the reference's start: its weights before the first step and its batches, step by step.

The hook packages do the writing and the replacing; what is to be written comes from here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from paritydbg.errors import UsageError
from paritydbg.model.event import Event, Role
from paritydbg.model.record import LayerRecord, ParameterRecord
from paritydbg.model.source import EventSource
from paritydbg.session.names import free_prefix
from paritydbg.weights.files import initial_values
from paritydbg.weights.pairing import Side, pair_sides
from paritydbg.weights.transplanting import Transplanted, fit


class SameStart:
    """The start of a reference, ready to be given to a port.

    Attributes:
        weights_from: dump whose parameters and buffers before step 1 are taken, or None.
        inputs_from: dump whose batches are taken, or None.
    """

    def __init__(
        self,
        weights_from: EventSource | None = None,
        inputs_from: EventSource | None = None,
        rename: Sequence[tuple[str, str]] = (),
        layer_pairs: Sequence[tuple[str, str]] = (),
        parameter_pairs: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.weights_from = weights_from
        self.inputs_from = inputs_from
        self._rename = tuple(rename)
        self._layer_pairs = tuple(layer_pairs)
        self._parameter_pairs = tuple(parameter_pairs)
        self._batches = _batches(inputs_from) if inputs_from is not None else {}

    def weights(
        self,
        layers: Sequence[LayerRecord],
        parameters: Sequence[ParameterRecord],
        current: Mapping[str, NDArray[Any]],
    ) -> Transplanted | None:
        """The port's parameters with the reference's values, or None where none are asked for.

        Args:
            layers, parameters: the port's.
            current: the port's own values, which help to tell transposed from plain.

        Raises:
            WeightsError: a shape that does not fit.
            UsageError: a given pair with a name that its side has not.
        """
        source = self.weights_from
        if source is None:
            return None
        values = initial_values(source)
        pairing = pair_sides(
            Side(source.run.layers, source.run.parameters, values),
            Side(tuple(layers), tuple(parameters), dict(current)),
            rename=self._rename,
            user_pairs=self._parameter_pairs,
            user_layers=self._layer_pairs,
        )
        return fit(pairing.parameters, values, parameters)

    def prefix(self, taken: Collection[str], kind: str) -> str:
        """The prefix of a net's names: the one that the reference has for a net of that class.

        Scripts with several nets (two that train each other) may call them in another order.

        Args:
            kind: the net's class name.
            taken: prefixes of nets that were found before.
        """
        if self.weights_from is not None:
            types = {layer.name: layer.type for layer in self.weights_from.run.layers}
            for name in ("", kind):
                if name not in taken and types.get(name) == kind:
                    return name
        return free_prefix(taken, kind)

    def batch(self, step: int, micro: int) -> Mapping[str, NDArray[Any]]:
        """The reference's batch entries of that step and micro-batch by name; empty if none asked for.

        Raises:
            UsageError: the reference has batches, but none of that step.
        """
        if self.inputs_from is None:
            return {}
        events = self._batches.get((step, micro))
        if events is None:
            known = ", ".join(str(s) for s in sorted({s for s, _ in self._batches})) or "none"
            raise UsageError(
                f"{self.inputs_from.path} has no batch of step {step} (it has {known}); record more "
                "of the reference with --steps, or run fewer here"
            )
        return {event.key.name: self.inputs_from.load(event) for event in events}


def _batches(source: EventSource) -> dict[tuple[int, int], list[Event]]:
    found: dict[tuple[int, int], list[Event]] = {}
    for event in source.events:
        if event.key.role is Role.BATCH:
            found.setdefault((event.key.step, event.key.micro), []).append(event)
    return found
