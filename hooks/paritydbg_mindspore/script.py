"""What goes on in a launched script: which net, loss, labels and optimizers were found, and recorded."""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from paritydbg.errors import UsageError
from paritydbg.model.event import Phase, Role, Values
from paritydbg.session.launch import Launch, matches_model
from paritydbg.session.names import batch_name, free_prefix
from paritydbg.session.recording import Recording
from paritydbg_mindspore import optimizers, structure, weights
from paritydbg_mindspore.recorder import MindSporeRecorder
from paritydbg_mindspore.tape import gradients_are_on, was_computed
from paritydbg_mindspore.values import NESTING, values_of
from paritydbg_mindspore.wrappers import has_parameters, is_loss, is_optimizer, is_wrapper

Call = Callable[..., Any]


class Script:
    """The launched script, as far as its nets, losses and optimizers were seen."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._nets: dict[str, nn.Cell] = {}
        self._prefix: dict[int, str] = {}
        self._recorders: dict[str, MindSporeRecorder] = {}
        self._optimizers: list[weakref.ref[Any]] = []
        self._fresh: list[weakref.ref[Any]] = []
        self._inside = 0
        self._in_loss = False
        # Losses and labels seen in this micro-batch: names run on ("loss", "loss.1").
        self._moment = (0, 0)
        self._labels = 0
        self._net_calls: Counter[str] = Counter()
        self._losses: list[bytes] = []
        self._unscaled: dict[bytes, Values] = {}
        self._graph_mode = False

    @property
    def active(self) -> bool:
        """Whether anything is captured in this process from now on."""
        return self._launch.active

    @property
    def watches_calls(self) -> bool:
        """Whether a cell that is called now may be a net, a loss or a wrapper."""
        return not self._inside and self._launch.active

    @property
    def recording(self) -> Recording:
        """The process's one recording."""
        return self._launch.begin()

    def graph_mode_wanted(self) -> None:
        """Remember, for the report, that the script asked for GRAPH mode."""
        self._graph_mode = True

    def call_cell(
        self, cell: nn.Cell, original: Call, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Call a cell from outside of every net: as a net, a loss, a wrapper, or as it is."""
        if is_optimizer(cell):
            self._watch_fresh()
            # A schedule is a cell with a parameter that the optimizer calls: no net.
            self._inside += 1
            try:
                return original(cell, *arguments, **keywords)
            finally:
                self._inside -= 1
        if is_loss(cell):
            return self.call_loss(
                type(cell).__name__,
                lambda *a, **k: original(cell, *a, **k),
                arguments,
                keywords,
            )
        if self._takes(cell):
            return self._call_net(cell, original, arguments, keywords)
        result = original(cell, *arguments, **keywords)
        if self.active and is_wrapper(cell):
            self.loss_found(result, f"what {type(cell).__name__} returns")
        return result

    def optimizer_made(self, optimizer: object) -> None:
        """Remember an optimizer; it is watched once it is complete, for its base class comes first."""
        self._optimizers.append(weakref.ref(optimizer))
        self._fresh.append(weakref.ref(optimizer))

    def loss_found(self, result: object, source: str) -> None:
        """Record the value that a gradient is taken of, unscaled where a scaler scaled it."""
        loss = result[0] if isinstance(result, (tuple, list)) and result else result
        recording = self._launch.recording
        if recording is None or not recording.live:
            return
        if not isinstance(loss, Tensor) or loss.size != 1 or "Float" not in str(loss.dtype):
            return
        values = values_of(loss)
        if values is None or not recording.wants(Role.LOSS, ""):
            return
        self._new_moment(recording)
        seen = values.array.tobytes()
        values = self._unscaled.get(seen, values)
        # A wrapper hands on the loss of what it wraps: the same value is the same loss.
        for known in {seen, values.array.tobytes()}:
            if known in self._losses:
                return
        name = "loss" if not self._losses else f"loss.{len(set(self._losses))}"
        self._losses += [seen, values.array.tobytes()]
        recording.tensor(Phase.FORWARD, Role.LOSS, name, values)
        recording.taken("loss", f"{source}, at {_caller()}")

    def loss_scaled(self, loss: object, scaled: object, scale: object) -> None:
        """Remember which loss a scaled one stands for, and record the scale."""
        before, after, times = values_of(loss), values_of(scaled), values_of(scale)
        if before is not None and after is not None:
            self._unscaled = {after.array.tobytes(): before}
        recording = self._launch.recording
        if recording is not None and recording.wants(Role.STATE, "") and times is not None:
            recording.tensor(Phase.UPDATE, Role.STATE, "loss_scale", times)

    def step_over(self) -> None:
        """A loss scaler's adjustment ends the step even where the optimizer was skipped."""
        recording = self._launch.recording
        if recording is not None and recording.clock.open:
            recording.clock.optimizer_runs()

    def call_loss(
        self, name: str, original: Call, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Call a loss; its label is recorded, and replaced by the reference's."""
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

    def _takes(self, cell: nn.Cell) -> bool:
        """Whether a call of this cell, from outside of every captured net, is a net's call."""
        kind = structure.user_class(type(cell))
        order = self._launch.order
        if not matches_model(order, kind.__name__, f"{kind.__module__}.{kind.__name__}"):
            return False
        if not order.model and is_wrapper(cell):
            return False
        if self._in_loss or not has_parameters(cell):
            return False
        if not gradients_are_on() and self._optimizers_of(cell):
            self.recording.record(
                "calls of the net without gradients (validation) are not captured as steps"
            )
            return False
        return True

    def _call_net(
        self, net: nn.Cell, original: Call, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Call a net under capture; its arguments may be replaced by the reference's."""
        clock = self.recording.clock
        prefix = self._prefix.get(id(net))
        if prefix is None:
            prefix = self._adopt(net)
        self._watch_fresh()
        clock.forward_begins()
        name = self._next_batch(prefix)
        given = self._given()
        if given:
            arguments = tuple(_fill(v, str(i), given, name) for i, v in enumerate(arguments))
            keywords = {key: _fill(v, key, given, name) for key, v in keywords.items()}
        self._record_batch(name, arguments, keywords)
        self._inside += 1
        differentiated = gradients_are_on()
        try:
            return original(net, *arguments, **keywords)
        finally:
            self._inside -= 1
            if not differentiated and not self._optimizers_of(net):
                # No backward pass will come: the call is the whole step.
                clock.close()

    def _adopt(self, net: nn.Cell) -> str:
        """Watch a net from now on: give it its start, record its structure, put hooks in."""
        recording = self.recording
        kind = structure.user_class(type(net)).__name__
        start = self._launch.same_start
        given = free_prefix if start is None else start.prefix
        prefix = given(self._nets, kind)
        self._prefix[id(net)] = prefix
        nets = {prefix: net}
        self._nets[prefix] = net
        recording.taken("net", f"{kind}, called at {_caller()}")
        if self._graph_mode:
            recording.record(
                "the script asks for GRAPH mode; it was run in PyNative, where hooks fire"
            )
        if self._launch.order.no_dropout:
            recording.record("dropout was switched off (--no-dropout)")
        self._give_start(net, nets)
        for record in (*structure.layer_records(nets), *structure.parameter_records(nets)):
            recording.record(record)
        working = self._optimizers_of(net)
        recorder = MindSporeRecorder(nets, working, recording)
        self._recorders[prefix] = recorder
        for optimizer in working:
            recording.record(optimizers.optimizer_record(optimizer, self._nets))
        self._fresh = [one for one in self._fresh if one() not in working]
        self._launch.adopt(recorder)
        return prefix

    def _watch_fresh(self) -> None:
        """Watch optimizers that were made after their net was found."""
        fresh, self._fresh = self._fresh, []
        for one in fresh:
            optimizer = one()
            for prefix, net in self._nets.items():
                if optimizer is not None and _works_on(optimizer, net):
                    self._recorders[prefix].watch_optimizer(optimizer)
                    self.recording.record(optimizers.optimizer_record(optimizer, self._nets))

    def _give_start(self, net: nn.Cell, nets: Mapping[str, nn.Cell]) -> None:
        start = self._launch.same_start
        if start is None:
            return
        # Names as in the dump, so that several nets find their own part of it.
        (prefix,) = nets
        current = {structure.joined(prefix, k): v for k, v in weights.read_parameters(net).items()}
        transplanted = start.weights(
            structure.layer_records(nets), structure.parameter_records(nets), current
        )
        if transplanted is None:
            return
        start_of = len(prefix) + 1 if prefix else 0
        values = {name[start_of:]: array for name, array in transplanted.values.items()}
        weights.write_parameters(net, values)
        for note in transplanted.notes:
            self.recording.record(note)

    def _optimizers_of(self, net: nn.Cell) -> list[Any]:
        """The living optimizers that work on any of the net's parameters."""
        alive = (reference() for reference in self._optimizers)
        return [one for one in alive if one is not None and _works_on(one, net)]

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

    def _record_batch(
        self, name: Callable[[str], str], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        recording = self.recording
        if not recording.wants(Role.BATCH, ""):
            return
        for slot, tensor in NESTING.found_in_call(arguments, keywords):
            # What another net made is no entry of the batch.
            values = None if was_computed(tensor) else values_of(tensor)
            if values is not None:
                recording.tensor(Phase.FORWARD, Role.BATCH, name(slot), values)
                recording.taken(f"batch {name(slot)}", "argument of the net")

    def _labelled(
        self,
        loss: str,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        recording: Recording,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        place = next((k for k in ("target", "labels", "label") if k in keywords), "")
        label = arguments[1] if len(arguments) > 1 else keywords.get(place)
        if not isinstance(label, Tensor):
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
                keywords = {**keywords, place: label}
        values = values_of(label)
        if values is not None and recording.wants(Role.BATCH, ""):
            recording.tensor(Phase.FORWARD, Role.BATCH, name, values)
            recording.taken(name, f"second argument of {loss}, called at {_caller()}")
        return arguments, keywords

    def _new_moment(self, recording: Recording) -> None:
        """Start counting losses and labels anew with each micro-batch."""
        moment = (recording.clock.step, recording.clock.micro)
        if moment != self._moment:
            self._moment = moment
            self._labels = 0
            self._losses = []
            self._net_calls.clear()


def _works_on(optimizer: Any, net: nn.Cell) -> bool:
    own = {id(parameter) for parameter in net.get_parameters()}
    groups = getattr(optimizer, "param_groups", None)
    if isinstance(groups, list):
        members = [p for group in groups for p in group["params"]]
    else:
        members = list(getattr(optimizer, "parameters", ()))
    return any(id(parameter) in own for parameter in members)


def _fill(value: Any, slot: str, given: Mapping[str, Any], name: Callable[[str], str]) -> Any:
    """The argument with the tensors replaced that the reference has values for."""
    if isinstance(value, Tensor):
        entry = name(slot)
        wanted = entry in given and not was_computed(value)
        return _replacement(value, given[entry], entry) if wanted else value
    if isinstance(value, dict):
        return type(value)(
            (key, _fill(v, f"{slot}.{key}", given, name)) for key, v in value.items()
        )
    if type(value) in (tuple, list):
        return type(value)(_fill(v, f"{slot}.{i}", given, name) for i, v in enumerate(value))
    return value


def _replacement(tensor: Tensor, array: Any, slot: str) -> Tensor:
    """The reference's values in the tensor's own dtype."""
    floating = "Float" in str(tensor.dtype)
    if floating != (array.dtype.kind == "f") or tensor.ndim != array.ndim:
        raise UsageError(
            f"batch entry {slot!r} is {array.dtype} {array.shape} in the reference and "
            f"{tensor.dtype} {tuple(tensor.shape)} here; leave --inputs-from away, or feed the "
            "same kind of batch"
        )
    return Tensor(np.ascontiguousarray(array).reshape(array.shape), tensor.dtype)


def _caller() -> str:
    """File and line of the script's own code that led here."""
    frame = sys._getframe(1)
    hidden = (os.path.dirname(ms.__file__), os.path.dirname(__file__), "<")
    while frame.f_back is not None and frame.f_code.co_filename.startswith(hidden):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
