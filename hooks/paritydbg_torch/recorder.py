"""Hooks on torch nets that record forward values, gradients, parameters and updates.

Gradients come through tensor hooks that are set in forward hooks: module backward hooks raise where
an in-place operator follows. A tensor hook sees the tensor's total gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from paritydbg.model.event import GRADIENT_OF, Phase, Role, Values
from paritydbg.session.recording import Recording
from paritydbg_torch.environment import restore_generator
from paritydbg_torch.packed import Padding
from paritydbg_torch.promotion import Promotion
from paritydbg_torch.structure import first_names, named_layers, named_tensors
from paritydbg_torch.taps import TorchTaps
from paritydbg_torch.values import NESTING, values_of
from paritydbg_torch.weights import write_parameters

Found = Iterator[tuple[str, torch.Tensor | PackedSequence]]


class TorchRecorder:
    """The hooks of one capture."""

    def __init__(
        self, nets: Mapping[str, object], optimizers: Sequence[object], recording: Recording
    ) -> None:
        self._nets = dict(nets)
        self._optimizers = tuple(optimizers)
        self._recording = recording
        self._handles: list[Any] = []
        # Calls of watched layers that are going on: outside of all of them a forward pass begins.
        self._depth = 0
        self._calls: dict[int, list[int]] = {}
        forcing = recording.forcing
        self._taps = None if forcing is None else TorchTaps(recording, forcing, self._padding)
        self._promotion: Promotion | None = None
        self._batch_first: dict[str, bool] = {}

    def attach(self) -> None:
        """Put the hooks in."""
        forcing = self._recording.forcing
        if forcing is not None:
            restore_generator(forcing.environment)
        if forcing is not None and forcing.promoted:
            self._promotion = Promotion(self._nets.values())
        seen: set[int] = set()
        for name, layer in named_layers(self._nets):
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            if isinstance(layer, torch.jit.ScriptModule):
                continue
            self._hook_layer(name, layer)
        names = first_names(self._nets)
        for name, tensor, is_buffer in named_tensors(self._nets):
            if not is_buffer and tensor.requires_grad and names[id(tensor)] == name:
                self._handles.append(tensor.register_hook(self._parameter_hook(name)))
        for optimizer in self._optimizers:
            if isinstance(optimizer, torch.optim.Optimizer):
                self.watch_optimizer(optimizer)

    def watch_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Record what the optimizer is given, and let its step count."""
        self._recording.clock.optimizer_known = True
        self._handles.append(optimizer.register_step_pre_hook(self._before_update))

    def detach(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._depth = 0
        if self._promotion is not None:
            self._promotion.remove()
            self._promotion = None

    def step_begins(self) -> None:
        """Record parameters and buffers before the step, learning rates and loss scale."""
        if self._recording.forcing is not None:
            for prefix, net in self._nets.items():
                own = {name for name, _, _ in named_tensors({"": net})}
                step = self._recording.clock.step
                write_parameters(net, self._recording.forcing.held(step, own, prefix))
        if self._promotion is not None:
            self._promotion.begin()
        self._record_tensors(Phase.FORWARD, parameters=True)
        self._record_rates()

    def step_ends(self) -> None:
        """Record parameters, where an optimizer is known, and buffers after the step."""
        if self._promotion is not None:
            self._promotion.end()
        self._record_tensors(Phase.UPDATE, parameters=self._recording.clock.optimizer_known)

    def _hook_layer(self, name: str, layer: nn.Module) -> None:
        self._batch_first[name] = bool(getattr(layer, "batch_first", False))

        def take(role: Role, call: int, found: Found) -> None:
            for slot, value in found:
                if isinstance(value, PackedSequence):
                    self._packed(role, name, call, slot, value)
                else:
                    self._tensor(role, name, call, slot, value)

        def before(_: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            recording = self._recording
            if self._depth == 0:
                recording.clock.forward_begins()
            self._depth += 1
            call = recording.next_call(name) if recording.live else 0
            self._calls.setdefault(id(layer), []).append(call)
            if self._taps is not None and recording.live:
                return self._taps.arguments(name, call, arguments, keywords)
            return take(Role.INPUT, call, NESTING.found_in_call(arguments, keywords))

        def after(_: nn.Module, arguments: Any, keywords: Any, output: Any) -> Any:
            calls = self._calls.get(id(layer))
            call = calls.pop() if calls else 0
            self._depth = max(0, self._depth - 1)
            if self._taps is not None and self._recording.live:
                return self._taps.output(name, call, output, outermost=self._depth == 0)
            return take(Role.OUTPUT, call, NESTING.found(output))

        self._handles.append(layer.register_forward_pre_hook(before, with_kwargs=True))
        # Called after an exception too, so that depth and calls stay right for whoever catches it.
        self._handles.append(layer.register_forward_hook(after, with_kwargs=True, always_call=True))

    def _tensor(self, role: Role, name: str, call: int, slot: str, tensor: torch.Tensor) -> None:
        """Record a layer's tensor now and its gradient when that arrives."""
        recording, gradient = self._recording, GRADIENT_OF[role]
        if recording.wants(role, name):
            values = values_of(tensor)
            if values is None:
                recording.skipped(name, role.value, f"a {tensor.layout} tensor has no dense values")
                return
            recording.tensor(Phase.FORWARD, role, name, values, call=call, slot=slot)
        if not recording.live or not tensor.requires_grad or not torch.is_grad_enabled():
            return
        if recording.plan.takes(gradient, name):
            tensor.register_hook(self._gradient_hook(gradient, name, call, slot, values_of))
        elif self._depth == 0:
            # The clock needs to see that a backward pass went on.
            tensor.register_hook(self._tick)

    def _packed(self, role: Role, name: str, call: int, slot: str, packed: PackedSequence) -> None:
        """Record a packed sequence padded with zeros, the form that other frameworks know."""
        recording, gradient = self._recording, GRADIENT_OF[role]
        padding = self._padding(name, packed)

        def padded(tensor: object) -> Values | None:
            values = values_of(tensor)
            return None if values is None else Values(padding.pad(values.array), values.dtype)

        values = padded(packed.data)
        if recording.wants(role, name) and values is not None:
            recording.tensor(Phase.FORWARD, role, name, values, call=call, slot=slot)
        if recording.wants(gradient, name) and packed.data.requires_grad:
            hook = self._gradient_hook(gradient, name, call, slot, padded)
            packed.data.register_hook(hook)

    def _padding(self, name: str, packed: PackedSequence) -> Padding:
        return Padding(packed, self._batch_first.get(name, False))

    def _gradient_hook(
        self,
        role: Role,
        name: str,
        call: int,
        slot: str,
        read: Callable[[object], Values | None],
    ) -> Callable[[torch.Tensor], None]:
        clock = self._recording.clock
        step, micro = clock.step, clock.micro

        def hook(gradient: torch.Tensor) -> None:
            clock.gradient_arrives()
            values = read(gradient)
            if values is not None:
                self._recording.tensor(
                    Phase.BACKWARD,
                    role,
                    name,
                    values,
                    call=call,
                    slot=slot,
                    step=step,
                    micro=micro,
                )

        return hook

    def _parameter_hook(self, name: str) -> Callable[[torch.Tensor], torch.Tensor | None]:
        owner = name.rpartition(".")[0]

        def hook(gradient: torch.Tensor) -> torch.Tensor | None:
            recording = self._recording
            recording.clock.gradient_arrives()
            if recording.wants(Role.GRAD, owner):
                values = values_of(gradient)
                if values is None:
                    recording.skipped(
                        name, Role.GRAD.value, "a sparse gradient has no dense values"
                    )
                    return None
                recording.tensor(Phase.BACKWARD, Role.GRAD, name, values)
            return self._given(Phase.BACKWARD, Role.GRAD, name, gradient)

        return hook

    def _given(
        self, phase: Phase, role: Role, name: str, gradient: torch.Tensor
    ) -> torch.Tensor | None:
        """The reference's gradient of a parameter in a forced replay, None for the net's own."""
        if self._taps is None or not self._recording.live:
            return None
        given: torch.Tensor | None = self._taps.parameter_gradient(phase, role, name, gradient)
        return given

    def _tick(self, gradient: torch.Tensor) -> None:
        self._recording.clock.gradient_arrives()

    def _before_update(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        recording = self._recording
        if recording.live:
            names = first_names(self._nets)
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    name = names.get(id(parameter))
                    if name is None or parameter.grad is None:
                        continue
                    if recording.wants(Role.GRAD_APPLIED, name.rpartition(".")[0]):
                        values = values_of(parameter.grad)
                        if values is not None:
                            recording.tensor(Phase.UPDATE, Role.GRAD_APPLIED, name, values)
                    given = self._given(Phase.UPDATE, Role.GRAD_APPLIED, name, parameter.grad)
                    if given is not None:
                        parameter.grad.copy_(given)
            self._record_rates()
        if self._promotion is not None:
            self._promotion.end()
        recording.clock.optimizer_runs()

    def _record_tensors(self, phase: Phase, parameters: bool) -> None:
        recording = self._recording
        names = first_names(self._nets)
        for name, tensor, is_buffer in named_tensors(self._nets):
            role = Role.BUFFER if is_buffer else Role.PARAMETER
            if names[id(tensor)] != name or not (is_buffer or parameters):
                continue
            if not recording.wants(role, name.rpartition(".")[0]):
                continue
            values = values_of(tensor)
            if values is None:
                recording.skipped(name, role.value, "its values cannot be read")
            else:
                recording.tensor(phase, role, name, values)

    def _record_rates(self) -> None:
        """Record the learning rates that the next update uses; a scheduler may move them later."""
        recording = self._recording
        if not recording.wants(Role.STATE, ""):
            return
        rates = [
            group["lr"]
            for optimizer in self._optimizers
            for group in getattr(optimizer, "param_groups", ())
            if "lr" in group
        ]
        for number, rate in enumerate(rates):
            name = "lr" if len(rates) == 1 else f"lr.{number}"
            values = Values.of(np.array(float(rate), np.float64))
            recording.tensor(Phase.UPDATE, Role.STATE, name, values)
