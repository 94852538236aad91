"""Captured runs that lie in memory, and a context of two of them, for explaining without any framework."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.context import Context
from paritydbg.measure.metrics import measure
from paritydbg.measure.precision import tolerance
from paritydbg.model.comparison import Allowance, Comparison, Verdict
from paritydbg.model.event import Event, EventKey, Phase, Role
from paritydbg.model.finding import Finding, Stage
from paritydbg.model.pair import Alignment, EventPair, LayerPair, ParameterPair
from paritydbg.model.record import (
    Environment,
    LayerRecord,
    OptimizerRecord,
    ParameterRecord,
    RunRecord,
)
from paritydbg.model.transform import IDENTITY

_PHASES = {
    Role.GRAD: Phase.BACKWARD,
    Role.GRAD_INPUT: Phase.BACKWARD,
    Role.GRAD_OUTPUT: Phase.BACKWARD,
    Role.GRAD_APPLIED: Phase.UPDATE,
    Role.STATE: Phase.UPDATE,
}


class MemoryRun:
    """A run whose events were put in by hand, in order."""

    def __init__(self, framework: str = "torch", device: str = "cpu") -> None:
        self._framework, self._device = framework, device
        self._events: list[Event] = []
        self._values: dict[Event, NDArray[Any]] = {}
        self.layers: list[LayerRecord] = []
        self.parameters: list[ParameterRecord] = []
        self.optimizers: list[OptimizerRecord] = []

    @property
    def path(self) -> str:
        return f"{self._framework}.h5"

    @property
    def run(self) -> RunRecord:
        return RunRecord(
            Environment(self._framework, "0", self._device),
            tuple(self.layers),
            tuple(self.parameters),
            tuple(self.optimizers),
            complete=True,
        )

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def load(self, event: Event) -> NDArray[Any]:
        return self._values[event]

    def add(
        self,
        role: Role,
        name: str,
        array: Any,
        *,
        step: int = 1,
        after: bool = False,
        call: int = 0,
        slot: str = "",
        micro: int = 0,
    ) -> Event:
        """Put in a tensor, float64 numbers as float32; ``after`` for a value after the step."""
        values = np.asarray(array)
        if values.dtype == np.float64 and role is not Role.STATE:
            values = values.astype(np.float32)
        phase = Phase.UPDATE if after else _PHASES.get(role, Phase.FORWARD)
        key = EventKey(step, phase, role, name, call, slot, micro)
        digest = hashlib.sha1(values.tobytes() + str(values.shape).encode()).hexdigest()
        event = Event(
            key, len(self._events), values.shape, str(values.dtype), values.nbytes, digest
        )
        self._events.append(event)
        self._values[event] = values
        return event

    def layer(self, name: str, api: str, training: bool = True, **attributes: Any) -> LayerRecord:
        """Put in a layer; its parameters are those put in under its name."""
        kind = api.rpartition(".")[2]
        own = tuple(p.name for p in self.parameters if p.layer == name)
        leaf = api.startswith(("torch.", "mindspore."))
        record = LayerRecord(
            name, kind, api, leaf, training, tuple(sorted(attributes.items())), own
        )
        self.layers.append(record)
        return record

    def parameter(
        self, name: str, array: Any, *, trainable: bool = True, buffer: bool = False
    ) -> None:
        """Put in a parameter's record and its value before the first step."""
        values = np.asarray(array)
        owner = name.rpartition(".")[0]
        self.parameters.append(
            ParameterRecord(name, owner, values.shape, "float32", trainable and not buffer, buffer)
        )
        self.add(Role.BUFFER if buffer else Role.PARAMETER, name, values)


def context_of(
    reference: MemoryRun, port: MemoryRun, names: Mapping[str, str] | None = None
) -> Context:
    """The context of two runs, events paired by their keys.

    Args:
        names: reference's name -> port's, of layers and parameters that are named otherwise.
    """
    renamed = names or {}
    by_key = {event.key: event for event in port.events}
    pairs = []
    for event in reference.events:
        partner = by_key.get(replace(event.key, name=renamed.get(event.key.name, event.key.name)))
        if partner is not None:
            pairs.append(EventPair((event,), (partner,)))
    layers = tuple(
        LayerPair(layer.name, renamed.get(layer.name, layer.name), "name", 1.0)
        for layer in reference.layers
        if renamed.get(layer.name, layer.name) in {other.name for other in port.layers}
    )
    parameters = tuple(
        ParameterPair((p.name,), (renamed.get(p.name, p.name),), IDENTITY, "name", 1.0)
        for p in reference.parameters
        if renamed.get(p.name, p.name) in {other.name for other in port.parameters}
    )
    alignment = Alignment(layers, parameters, tuple(pairs))
    compared = tuple(_compared(pair, reference, port) for pair in pairs)
    return Context(reference, port, alignment, compared)


def finding_of(
    context: Context, stage: Stage, place: str, role: Role, *, name: str | None = None, **given: Any
) -> Finding:
    """The finding whose deciding pair is the first of that role and name that differs."""
    wanted = place if name is None else name
    found = [
        c
        for c in context.comparisons
        if c.pair.first.key.role is role
        and c.pair.first.key.name == wanted
        and c.verdict is not Verdict.MATCH
    ]
    evidence = found[0]
    key = evidence.pair.first.key
    return Finding(
        stage=stage,
        verdict=evidence.verdict,
        place=place,
        summary="",
        port_place=evidence.pair.port[0].key.name,
        phase=key.phase,
        step=key.step,
        evidence=evidence,
        inputs_agree=True,
        **given,
    )


def _compared(pair: EventPair, reference: MemoryRun, port: MemoryRun) -> Comparison:
    one, other = reference.load(pair.reference[0]), port.load(pair.port[0])
    if one.shape != other.shape:
        return Comparison(pair, Verdict.SHAPE, reason="shape", score=float("inf"))
    metrics = measure(one, other, tolerance("float32"))
    allowance = Allowance(1e-6 * metrics.reference_l2, "modelled", "rounding")
    verdict = Verdict.DIVERGED
    if metrics.nonfinite_differs:
        verdict = Verdict.NONFINITE
    elif metrics.difference_l2 <= allowance.l2:
        verdict = Verdict.MATCH
    return Comparison(pair, verdict, metrics, allowance, 10.0)
