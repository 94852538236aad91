"""What goes on in a launched script: which net, loss, labels and optimizers were found, and recorded."""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from paritydbg.errors import UsageError
from paritydbg.model.event import Phase, Role
from paritydbg.session.launch import Launch, matches_model
from paritydbg.session.names import batch_name, free_prefix
from paritydbg.session.recording import Recording
from paritydbg_torch import structure, weights
from paritydbg_torch.recorder import TorchRecorder
from paritydbg_torch.values import NESTING, values_of


class Script:
    """The launched script, as far as its nets, losses and optimizers were seen."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._nets: dict[str, nn.Module] = {}
        self._prefix: dict[int, str] = {}
        self._recorders: dict[str, TorchRecorder] = {}
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self._inside = 0
        self._in_loss = False
        # Losses seen in this micro-batch: names run on ("loss", "loss.1").
        self._moment = (0, 0)
        self._labels = 0
        self._net_calls: Counter[str] = Counter()
        self._losses: list[int] = []
        self._unscaled: dict[int, torch.Tensor] = {}

    @property
    def active(self) -> bool:
        """Whether anything is captured in this process from now on."""
        return self._launch.active

    @property
    def recording(self) -> Recording:
        """The process's one recording."""
        return self._launch.begin()

    def takes(self, module: nn.Module) -> bool:
        """Whether a call of this module, from outside of every captured net, is a net's call."""
        if self._inside or isinstance(module, torch.jit.ScriptModule):
            return False
        net = structure.unwrapped(module)
        if not matches_model(
            self._launch.order, type(net).__name__, f"{type(net).__module__}.{type(net).__name__}"
        ):
            return False
        if next(net.parameters(), None) is None:
            return False
        validating = not net.training and not torch.is_grad_enabled()
        if validating and self._optimizers_of(net):
            self.recording.record(
                "calls in eval mode without gradients (validation) are not captured as steps"
            )
            return False
        return True

    def call_net(
        self,
        module: nn.Module,
        original: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """Call a net under capture; its arguments may be replaced by the reference's."""
        net = structure.unwrapped(module)
        clock = self.recording.clock
        prefix = self._prefix.get(id(net))
        if prefix is None:
            prefix = self._adopt(net)
        clock.forward_begins()
        name = self._next_batch(prefix)
        arguments, keywords = self._fed(arguments, keywords, name)
        self._record_batch(name, arguments, keywords)
        self._inside += 1
        try:
            return original(module, *arguments, **keywords)
        finally:
            self._inside -= 1
            if not torch.is_grad_enabled() and not self._optimizers_of(net):
                # No backward pass will come: the call is the whole step.
                clock.close()

    def optimizer_made(self, optimizer: torch.optim.Optimizer) -> None:
        """Remember an optimizer, and watch it if its net was found already."""
        self._optimizers.append(weakref.ref(optimizer))
        for prefix, net in self._nets.items():
            if optimizer in self._optimizers_of(net):
                self._recorders[prefix].watch_optimizer(optimizer)
                self.recording.record(structure.optimizer_record(optimizer, self._nets))

    def loss_found(self, loss: torch.Tensor) -> None:
        """Record the value that a backward pass starts from, unscaled where a scaler scaled it."""
        given, loss = loss, self._unscaled.pop(id(loss), loss)
        recording = self._launch.recording
        if recording is None or not recording.live or loss.numel() != 1:
            return
        self._new_moment(recording)
        if id(loss) in self._losses:
            return
        name = "loss" if not self._losses else f"loss.{len(self._losses) // 2}"
        # Tensor.backward leads on to torch.autograd.backward with what it was called on.
        self._losses += [id(loss), id(given)]
        values = values_of(loss)
        if values is not None and recording.wants(Role.LOSS, ""):
            recording.tensor(Phase.FORWARD, Role.LOSS, name, values)
            recording.taken("loss", f"what backward() starts from, at {_caller()}")

    def loss_scaled(self, loss: torch.Tensor, scaled: torch.Tensor, scaler: Any) -> None:
        """Remember which loss a scaled one stands for, and record the scale."""
        self._unscaled = {id(scaled): loss}
        recording = self._launch.recording
        if recording is not None and recording.wants(Role.STATE, ""):
            values = values_of(float(scaler.get_scale()))
            if values is not None:
                recording.tensor(Phase.UPDATE, Role.STATE, "loss_scale", values)

    def step_over(self) -> None:
        """A gradient scaler's update ends the step even where it skipped the optimizer."""
        recording = self._launch.recording
        if recording is not None and recording.clock.open:
            recording.clock.optimizer_runs()

    def call_loss(
        self,
        name: str,
        original: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """Call a functional loss; its label is recorded, and replaced by the reference's."""
        recording = self._launch.recording
        wanted = not self._launch.order.loss or self._launch.order.loss == name
        if recording is None or not recording.live or self._in_loss or not wanted:
            return original(*arguments, **keywords)
        self._in_loss = True
        try:
            arguments, keywords = self._labelled(name, arguments, keywords, recording)
            return original(*arguments, **keywords)
        finally:
            self._in_loss = False

    def _labelled(
        self,
        loss: str,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        recording: Recording,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        label = arguments[1] if len(arguments) > 1 else keywords.get("target")
        if not isinstance(label, torch.Tensor):
            return arguments, keywords
        self._new_moment(recording)
        name = "label" if not self._labels else f"label.{self._labels}"
        self._labels += 1
        given = self._given().get(name)
        if given is not None:
            label = _replacement(label, given, name)
            if len(arguments) > 1:
                arguments = (arguments[0], label, *arguments[2:])
            else:
                keywords = {**keywords, "target": label}
        values = values_of(label)
        if values is not None and recording.wants(Role.BATCH, ""):
            recording.tensor(Phase.FORWARD, Role.BATCH, name, values)
            recording.taken(name, f"second argument of {loss}, called at {_caller()}")
        return arguments, keywords

    def _adopt(self, net: nn.Module) -> str:
        """Watch a net from now on: give it its start, record its structure, put hooks in."""
        recording = self.recording
        start = self._launch.same_start
        given = free_prefix if start is None else start.prefix
        prefix = given(self._nets, type(net).__name__)
        self._prefix[id(net)] = prefix
        nets = {prefix: net}
        self._nets[prefix] = net
        recording.taken("net", f"{type(net).__name__}, called at {_caller()}")
        if self._launch.order.no_dropout:
            recording.record("dropout was switched off (--no-dropout)")
        self._give_start(net, nets)
        for record in (*structure.layer_records(nets), *structure.parameter_records(nets)):
            recording.record(record)
        recorder = TorchRecorder(nets, self._optimizers_of(net), recording)
        self._recorders[prefix] = recorder
        for optimizer in self._optimizers_of(net):
            recording.record(structure.optimizer_record(optimizer, self._nets))
        self._launch.adopt(recorder)
        return prefix

    def _give_start(self, net: nn.Module, nets: Mapping[str, nn.Module]) -> None:
        start = self._launch.same_start
        if start is None:
            return
        # Names as in the dump, so that several nets find their own part of it.
        (prefix,) = nets
        records = structure.parameter_records(nets)
        current = {structure.joined(prefix, k): v for k, v in weights.read_parameters(net).items()}
        transplanted = start.weights(structure.layer_records(nets), records, current)
        if transplanted is None:
            return
        start_of = len(prefix) + 1 if prefix else 0
        values = {name[start_of:]: array for name, array in transplanted.values.items()}
        weights.write_parameters(net, values)
        for note in transplanted.notes:
            self.recording.record(note)

    def _optimizers_of(self, net: nn.Module) -> list[torch.optim.Optimizer]:
        """The living optimizers that work on any of the net's parameters."""
        own = {id(parameter) for parameter in net.parameters()}
        alive = (reference() for reference in self._optimizers)
        return [
            optimizer
            for optimizer in alive
            if optimizer is not None
            and any(id(p) in own for group in optimizer.param_groups for p in group["params"])
        ]

    def _given(self) -> Mapping[str, Any]:
        """The reference's batch of this step, empty where none is asked for or wanted."""
        start, recording = self._launch.same_start, self.recording
        if start is None or not recording.live:
            return {}
        return start.batch(recording.clock.step, recording.clock.micro)

    def _next_batch(self, prefix: str) -> Callable[[str], str]:
        """How the arguments of the net's call that begins now are named."""
        self._new_moment(self.recording)
        call = self._net_calls[prefix]
        self._net_calls[prefix] += 1
        return batch_name(prefix, call)

    def _fed(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any], name: Callable[[str], str]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = self._given()
        if not given:
            return arguments, keywords
        fed = tuple(_fill(value, str(i), given, name) for i, value in enumerate(arguments))
        return fed, {k: _fill(value, k, given, name) for k, value in keywords.items()}

    def _record_batch(
        self, name: Callable[[str], str], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        recording = self.recording
        if not recording.wants(Role.BATCH, ""):
            return
        for slot, tensor in NESTING.found_in_call(arguments, keywords):
            # What another net made is no entry of the batch.
            if not isinstance(tensor, torch.Tensor) or _was_computed(tensor):
                continue
            values = values_of(tensor)
            if values is not None:
                recording.tensor(Phase.FORWARD, Role.BATCH, name(slot), values)
                recording.taken(f"batch {name(slot)}", "argument of the net")

    def _new_moment(self, recording: Recording) -> None:
        """Start counting losses and labels anew with each micro-batch."""
        moment = (recording.clock.step, recording.clock.micro)
        if moment != self._moment:
            self._moment = moment
            self._labels = 0
            self._losses = []
            self._net_calls.clear()


def _was_computed(tensor: torch.Tensor) -> bool:
    """Whether a gradient would flow back through the tensor to what made it."""
    return tensor.grad_fn is not None


def _fill(value: Any, slot: str, given: Mapping[str, Any], name: Callable[[str], str]) -> Any:
    """The argument with the tensors replaced that the reference has values for."""
    if isinstance(value, torch.Tensor):
        entry = name(slot)
        wanted = entry in given and not _was_computed(value)
        return _replacement(value, given[entry], entry) if wanted else value
    if isinstance(value, dict):
        return type(value)(
            (key, _fill(v, f"{slot}.{key}", given, name)) for key, v in value.items()
        )
    if type(value) in (tuple, list):
        return type(value)(_fill(v, f"{slot}.{i}", given, name) for i, v in enumerate(value))
    return value


def _replacement(tensor: torch.Tensor, array: Any, slot: str) -> torch.Tensor:
    """The reference's values in the tensor's own dtype, on its device."""
    given = torch.from_numpy(array.copy())
    kinds = tensor.is_floating_point() == given.is_floating_point()
    if not kinds or tensor.dim() != given.dim():
        raise UsageError(
            f"batch entry {slot!r} is {given.dtype} {tuple(given.shape)} in the reference and "
            f"{tensor.dtype} {tuple(tensor.shape)} here; leave --inputs-from away, or feed the "
            "same kind of batch"
        )
    return given.to(device=tensor.device, dtype=tensor.dtype).requires_grad_(tensor.requires_grad)


def _caller() -> str:
    """File and line of the script's own code that led here."""
    frame = sys._getframe(1)
    hidden = (os.path.dirname(torch.__file__), os.path.dirname(__file__), "<")
    while frame.f_back is not None and frame.f_code.co_filename.startswith(hidden):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
