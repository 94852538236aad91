"""One capture as it runs: takes what hooks saw, keeps step and call numbers, hands events to the sink.

How tensors are seen is the hook packages' matter, how they are stored the dump's.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import (
    Environment,
    LayerRecord,
    NoiseRecord,
    OptimizerRecord,
    ParameterRecord,
    SkippedRecord,
    Taken,
)
from paritydbg.session.clock import StepClock
from paritydbg.session.forcing import PROMOTED, SETTING, Forcing
from paritydbg.session.plan import CapturePlan

Record = LayerRecord | ParameterRecord | OptimizerRecord | SkippedRecord | Taken | NoiseRecord | str


class Sink(Protocol):
    """Where events and records go: a dump's writer, or a list in a test."""

    def add(self, key: EventKey, values: Values) -> None:
        """Store one event; the values are the sink's from now on."""

    def record(self, record: Record) -> None:
        """Store one record; a plain string is a note."""

    def close(self, complete: bool = True, ended: str = "") -> None:
        """Finish; ``ended`` says why where the run is not complete."""


class Recording:
    """Events on their way from hooks to a sink; opened by its first event, so that a run without
    any leaves nothing behind.

    Attributes:
        plan: what is taken.
        clock: the step that is going on.
        rank: of this process.
        forcing: the reference's values that replace the net's own, None for a free run.
        events: how many were handed on.
    """

    def __init__(
        self,
        open_sink: Callable[[Environment], Sink],
        plan: CapturePlan,
        environment: Environment,
        rank: int = 0,
        forcing: Forcing | None = None,
    ) -> None:
        self.plan = plan
        self.forcing = forcing
        self.clock = StepClock()
        self.rank = rank
        self.events = 0
        self._open_sink = open_sink
        if forcing is not None:
            also = ((SETTING, True), (PROMOTED, True)) if forcing.promoted else ((SETTING, True),)
            settings = (*environment.settings, *also)
            environment = replace(environment, settings=tuple(sorted(settings)))
        self._environment = environment
        self._sink: Sink | None = None
        self._waiting: list[Record] = []
        self._seen_records: set[Record] = set()
        self._calls: Counter[str] = Counter()
        self._calls_step = -1
        # torch runs backward hooks on device threads.
        self._lock = threading.RLock()

    @property
    def live(self) -> bool:
        """Whether the step that is going on is wanted and open."""
        return self.clock.open and self.clock.step in self.plan.steps

    def wants(self, role: Role, layer: str) -> bool:
        """Whether a tensor of this role at this layer is taken now; cheap, ask before copying."""
        return self.live and self.plan.takes(role, layer)

    def next_call(self, layer: str) -> int:
        """The number of the layer's call that begins now, from 0 within the step."""
        with self._lock:
            if self._calls_step != self.clock.step:
                self._calls.clear()
                self._calls_step = self.clock.step
            number = self._calls[layer]
            self._calls[layer] += 1
            return number

    def tensor(
        self,
        phase: Phase,
        role: Role,
        name: str,
        values: Values,
        *,
        call: int = 0,
        slot: str = "",
        step: int | None = None,
        micro: int | None = None,
    ) -> None:
        """Hand one tensor on; step and micro-batch are the current ones unless given.

        Backward hooks give the step and micro-batch of their forward.
        """
        with self._lock:
            key = EventKey(
                step=self.clock.step if step is None else step,
                phase=phase,
                role=role,
                name=name,
                call=call,
                slot=slot,
                micro=self.clock.micro if micro is None else micro,
                rank=self.rank,
            )
            noise = None if self.forcing is None else self.forcing.noise(key, values)
            self._opened().add(key, values)
            self.events += 1
            if noise is not None:
                self._opened().record(noise)

    def record(self, record: Record) -> None:
        """Hand a record (or a note) on, once; it waits until there is an event to go with."""
        with self._lock:
            if record in self._seen_records:
                return
            self._seen_records.add(record)
            if self._sink is None:
                self._waiting.append(record)
            else:
                self._sink.record(record)

    def skipped(self, name: str, role: str, reason: str) -> None:
        """Report a layer or tensor that was seen and cannot be captured."""
        self.record(SkippedRecord(name, role, reason))

    def taken(self, what: str, source: str) -> None:
        """Report what was taken for a thing that had to be guessed."""
        self.record(Taken(what, source))

    def close(self, complete: bool = True, ended: str = "") -> None:
        """Finish the sink, if any event ever opened it."""
        with self._lock:
            if self._sink is not None:
                self._sink.close(complete, ended)
                self._sink = None

    def _opened(self) -> Sink:
        if self._sink is None:
            self._sink = self._open_sink(self._environment)
            for record in self._waiting:
                self._sink.record(record)
            self._waiting.clear()
        return self._sink
