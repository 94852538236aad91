"""Hooks on MindSpore nets that record forward values, gradients, parameters and updates.

Gradients come through tensor hooks that are set in forward hooks: cell backward hooks skip layers
without a word. Hooks copy values and do nothing else; an operator in one would change later bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn

from paritydbg.errors import UsageError
from paritydbg.model.event import GRADIENT_OF, Phase, Role, Values
from paritydbg.session.recording import Recording
from paritydbg_mindspore.optimizers import KINDS, learning_rates
from paritydbg_mindspore.structure import (
    first_names,
    named_layers,
    named_parameters,
    why_unhooked,
)
from paritydbg_mindspore.tape import gradients_are_on
from paritydbg_mindspore.taps import MindSporeTaps
from paritydbg_mindspore.values import NESTING, values_of
from paritydbg_mindspore.weights import write_parameters

_RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)
Hook = Callable[[Tensor | None], Tensor | None]


class MindSporeRecorder:
    """The hooks of one capture."""

    def __init__(
        self, nets: Mapping[str, object], optimizers: Sequence[object], recording: Recording
    ) -> None:
        self._nets = dict(nets)
        self._optimizers = list(optimizers)
        self._recording = recording
        self._handles: list[Any] = []
        # Watched layers whose call goes on: outside of all of them a forward pass begins.
        self._depth = 0
        self._calls: dict[int, list[int]] = {}
        forcing = recording.forcing
        if forcing is not None and forcing.promoted:
            raise UsageError(
                "MindSpore cannot compute a whole net in float64 (it has no such convolution, "
                "BatchNorm or cross entropy on CPU); leave promoted away"
            )
        self._taps = (
            None if forcing is None else MindSporeTaps(recording, forcing, _anchor(self._nets))
        )

    def attach(self) -> None:
        """Put the hooks in; layers whose hooks cannot fire are reported."""
        seen: set[int] = set()
        recurrent: list[str] = []
        for name, cell in named_layers(self._nets):
            # What a recurrent layer is built of is the framework's affair; torch's has nothing inside.
            if id(cell) in seen or any(name.startswith(f"{outer}.") for outer in recurrent):
                continue
            if isinstance(cell, _RECURRENT):
                recurrent.append(name)
            seen.add(id(cell))
            reason = why_unhooked(cell)
            if reason:
                self._recording.skipped(name, Role.OUTPUT.value, reason)
            self._hook_layer(name, cell)
        names = first_names(self._nets)
        for name, parameter, is_buffer in named_parameters(self._nets):
            wanted = not is_buffer and getattr(parameter, "requires_grad", False)
            if wanted and names[id(parameter)] == name:
                self._handles.append(parameter.register_hook(self._parameter_hook(name)))
        optimizers, self._optimizers = self._optimizers, []
        for optimizer in optimizers:
            self.watch_optimizer(optimizer)

    def watch_optimizer(self, optimizer: object) -> None:
        """Record what the optimizer is given, and let its step count."""
        self._recording.clock.optimizer_known = True
        self._optimizers.append(optimizer)
        if isinstance(optimizer, KINDS):
            members = list(optimizer.parameters)

            def before(_: nn.Cell, arguments: tuple[Any, ...]) -> Any:
                return self._before_update(members, arguments)

            self._handles.append(optimizer.register_forward_pre_hook(before))
        else:
            self._recording.skipped(
                type(optimizer).__name__,
                Role.GRAD_APPLIED.value,
                "it is no MindSpore optimizer, so that what it is given cannot be seen",
            )

    def detach(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._depth = 0
        self._calls.clear()

    def step_begins(self) -> None:
        """Record parameters and buffers before the step, and learning rates."""
        if self._recording.forcing is not None:
            for prefix, net in self._nets.items():
                own = {name for name, _, _ in named_parameters({"": net})}
                step = self._recording.clock.step
                write_parameters(net, self._recording.forcing.held(step, own, prefix))
        self._record_tensors(Phase.FORWARD, parameters=True)
        self._record_rates()

    def step_ends(self) -> None:
        """Record parameters, where an optimizer is known, and buffers after the step."""
        self._record_tensors(Phase.UPDATE, parameters=self._recording.clock.optimizer_known)

    def _hook_layer(self, name: str, cell: nn.Cell) -> None:
        # Where the cell has its own bprop no forward hook will say that the call is over.
        returns = not getattr(cell, "has_bprop", False)

        def before(_: nn.Cell, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            recording = self._recording
            if self._depth == 0:
                recording.clock.forward_begins()
            call = recording.next_call(name) if recording.live else 0
            if returns:
                self._depth += 1
                self._calls.setdefault(id(cell), []).append(call)
            if self._taps is not None and recording.live:
                return self._taps.arguments(name, call, arguments, keywords)
            for slot, tensor in NESTING.found_in_call(arguments, keywords):
                self._tensor(Role.INPUT, name, call, slot, tensor)
            return None

        def after(_: nn.Cell, arguments: Any, keywords: Any, output: Any) -> Any:
            calls = self._calls.get(id(cell))
            call = calls.pop() if calls else 0
            self._depth = max(0, self._depth - 1)
            if self._taps is not None and self._recording.live:
                return self._taps.output(name, call, output, outermost=self._depth == 0)
            for slot, tensor in NESTING.found(output):
                self._tensor(Role.OUTPUT, name, call, slot, tensor)
            return None

        self._handles.append(cell.register_forward_pre_hook(before, with_kwargs=True))
        if returns:
            # Called after an exception too, so that depth and calls stay right.
            self._handles.append(
                cell.register_forward_hook(after, with_kwargs=True, always_call=True)
            )

    def _tensor(self, role: Role, name: str, call: int, slot: str, tensor: Tensor) -> None:
        """Record a layer's tensor now and its gradient when that arrives."""
        recording, gradient = self._recording, GRADIENT_OF[role]
        if recording.wants(role, name):
            values = values_of(tensor)
            if values is None:
                recording.skipped(name, role.value, f"{tensor.dtype} has no dense values")
                return
            recording.tensor(Phase.FORWARD, role, name, values, call=call, slot=slot)
        if not recording.live or not gradients_are_on():
            return
        if not recording.plan.takes(gradient, name):
            return
        clock = recording.clock
        step, micro = clock.step, clock.micro

        def hook(arrived: Tensor | None) -> Tensor | None:
            clock.gradient_arrives()
            values = None if arrived is None else values_of(arrived)
            if values is not None:
                recording.tensor(
                    Phase.BACKWARD,
                    gradient,
                    name,
                    values,
                    call=call,
                    slot=slot,
                    step=step,
                    micro=micro,
                )

        _register(tensor, hook)

    def _parameter_hook(self, name: str) -> Hook:
        owner = name.rpartition(".")[0]

        def hook(arrived: Tensor | None) -> Tensor | None:
            recording = self._recording
            recording.clock.gradient_arrives()
            if arrived is None:
                return None
            if recording.wants(Role.GRAD, owner):
                values = values_of(arrived)
                if values is not None:
                    recording.tensor(Phase.BACKWARD, Role.GRAD, name, values)
            return self._given(Phase.BACKWARD, Role.GRAD, name, arrived)

        return hook

    def _given(self, phase: Phase, role: Role, name: str, gradient: Tensor) -> Tensor | None:
        """The reference's gradient of a parameter in a forced replay, None for the net's own."""
        if self._taps is None or not self._recording.live:
            return None
        given: Tensor | None = self._taps.parameter_gradient(phase, role, name, gradient)
        return given

    def _before_update(self, members: list[Any], arguments: tuple[Any, ...]) -> Any:
        """Record what an optimizer is given; in a forced replay, what it is to take in its place."""
        recording = self._recording
        taken: list[Any] = []
        listed = bool(arguments) and isinstance(arguments[0], (tuple, list))
        if recording.live and arguments:
            gradients = arguments[0] if listed else arguments
            names = first_names(self._nets)
            taken = list(gradients)
            for number, (parameter, gradient) in enumerate(zip(members, gradients, strict=False)):
                name = names.get(id(parameter))
                if name is None or not isinstance(gradient, Tensor):
                    continue
                if recording.wants(Role.GRAD_APPLIED, name.rpartition(".")[0]):
                    values = values_of(gradient)
                    if values is not None:
                        recording.tensor(Phase.UPDATE, Role.GRAD_APPLIED, name, values)
                given = self._given(Phase.UPDATE, Role.GRAD_APPLIED, name, gradient)
                if given is not None:
                    taken[number] = given
            self._record_rates()
        recording.clock.optimizer_runs()
        if self._taps is None or not taken:
            return None
        return (tuple(taken), *arguments[1:]) if listed else tuple(taken)

    def _record_tensors(self, phase: Phase, parameters: bool) -> None:
        recording = self._recording
        names = first_names(self._nets)
        for name, tensor, is_buffer in named_parameters(self._nets):
            role = Role.BUFFER if is_buffer else Role.PARAMETER
            if names[id(tensor)] != name or not (is_buffer or parameters):
                continue
            if not recording.wants(role, name.rpartition(".")[0]):
                continue
            values = values_of(tensor)
            if values is not None:
                recording.tensor(phase, role, name, values)

    def _record_rates(self) -> None:
        """Record the learning rates that the next update uses."""
        recording = self._recording
        if not recording.wants(Role.STATE, ""):
            return
        rates: list[float] = []
        for optimizer in self._optimizers:
            known = learning_rates(optimizer)
            if known is None:
                recording.skipped(
                    type(optimizer).__name__,
                    Role.STATE.value,
                    "its learning rate cannot be read without running an operator",
                )
            else:
                rates += known
        for number, rate in enumerate(rates):
            name = "lr" if len(rates) == 1 else f"lr.{number}"
            values = Values.of(np.array(rate, np.float64))
            recording.tensor(Phase.UPDATE, Role.STATE, name, values)


def _anchor(nets: Mapping[str, object]) -> Parameter | None:
    """The smallest parameter that is trained, for a gradient of zero is made for it at every tap."""
    members = [p for _, p, is_buffer in named_parameters(nets) if not is_buffer]
    trained = [p for p in members if isinstance(p, Parameter) and p.requires_grad]
    return min(trained, key=lambda parameter: parameter.size, default=None)


def _register(tensor: Tensor, hook: Hook) -> None:
    try:
        tensor.register_hook(hook)
    except RuntimeError:
        # A detached tensor: MindSpore tells only by refusing. No gradient will come, and none is
        # what the dump then shows.
        return
