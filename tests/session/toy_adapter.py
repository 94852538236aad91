"""A framework of a few lines, through which the with-block is tested without torch or mindspore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paritydbg.model.event import Phase, Role, Values
from paritydbg.model.record import Environment, LayerRecord, OptimizerRecord, ParameterRecord
from paritydbg.session.recording import Recording


class ToyNet:
    """Doubles its input by a weight that an optimizer may change."""

    def __init__(self) -> None:
        self.weight = np.float32(2.0)
        self.hooks: list[Any] = []

    def __call__(self, x: float) -> float:
        for hook in list(self.hooks):
            hook("before", x)
        y = float(x * self.weight)
        for hook in list(self.hooks):
            hook("after", y)
        return y

    def backward(self) -> None:
        for hook in list(self.hooks):
            hook("gradient", 1.0)


class ToyRecorder:
    """Hooks on toy nets."""

    def __init__(self, nets: Mapping[str, ToyNet], recording: Recording) -> None:
        self.nets = nets
        self.recording = recording
        self.attached = False

    def attach(self) -> None:
        self.attached = True
        for name, net in self.nets.items():
            net.hooks.append(lambda when, value, name=name: self.see(name, when, value))

    def detach(self) -> None:
        self.attached = False
        for net in self.nets.values():
            net.hooks.clear()

    def step_begins(self) -> None:
        self._parameters(Phase.FORWARD)

    def step_ends(self) -> None:
        if self.recording.clock.optimizer_known:
            self._parameters(Phase.UPDATE)

    def see(self, name: str, when: str, value: float) -> None:
        recording = self.recording
        if when == "before":
            recording.clock.forward_begins()
        elif when == "gradient":
            recording.clock.gradient_arrives()
        elif recording.wants(Role.OUTPUT, name):
            values = Values.of(np.array(value, np.float32))
            call = recording.next_call(name)
            recording.tensor(Phase.FORWARD, Role.OUTPUT, name, values, call=call)

    def _parameters(self, phase: Phase) -> None:
        for name, net in self.nets.items():
            values = Values.of(np.array(net.weight))
            self.recording.tensor(phase, Role.PARAMETER, f"{name}.weight".strip("."), values)


class ToyAdapter:
    """As much of an adapter as the with-block asks for."""

    name = "toy"

    def __init__(self) -> None:
        self.recorders: list[ToyRecorder] = []

    def owns(self, net: object) -> bool:
        return isinstance(net, ToyNet)

    def environment(self) -> Environment:
        return Environment("toy", "1", "cpu")

    def values(self, tensor: object) -> Values | None:
        if isinstance(tensor, (int, float, np.ndarray)):
            return Values.of(np.asarray(tensor))
        return None

    def structure(
        self, nets: Mapping[str, object]
    ) -> tuple[tuple[LayerRecord, ...], tuple[ParameterRecord, ...]]:
        layers = tuple(LayerRecord(name, "ToyNet", "toy.ToyNet", True, True) for name in nets)
        return layers, ()

    def optimizer_record(self, optimizer: object, nets: Mapping[str, object]) -> OptimizerRecord:
        return OptimizerRecord("SGD", "toy.SGD")

    def recorder(
        self, nets: Mapping[str, Any], optimizers: Sequence[object], recording: Recording
    ) -> ToyRecorder:
        self.recorders.append(ToyRecorder(nets, recording))
        return self.recorders[-1]
