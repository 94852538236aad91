"""Taps on layers: what comes in and goes out is recorded, then replaced by the reference's values.

Each layer so sees what the reference's layer saw, forward and backward, and its error is its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence

from paritydbg.model.event import GRADIENT_OF, EventKey, Phase, Role
from paritydbg.session.forcing import Forcing
from paritydbg.session.recording import Recording
from paritydbg_torch.values import values_of

Arrived = Callable[[torch.Tensor], torch.Tensor]
Packed = Callable[[Role, str, int, str, PackedSequence], None]


class Taps:
    """The taps of one recorder.

    Args:
        recording: where everything goes that comes by.
        forcing: the reference's values.
        packed: records a packed sequence, which is not replaced.
    """

    def __init__(self, recording: Recording, forcing: Forcing, packed: Packed) -> None:
        self._recording = recording
        self._forcing = forcing
        self._packed = packed
        # Keeps a tap differentiable behind a detach: its backward is called all the same.
        self._anchor = torch.zeros((), requires_grad=True)
        self._outputs: list[torch.Tensor] = []

    def arguments(
        self, name: str, call: int, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call's arguments, each tensor recorded and replaced."""
        put = self._putter(Role.INPUT, name, call)
        return (
            tuple(mapped(value, str(place), put) for place, value in enumerate(arguments)),
            {key: mapped(value, key, put) for key, value in keywords.items()},
        )

    def output(self, name: str, call: int, output: Any, outermost: bool) -> Any:
        """A layer's output, each tensor recorded and replaced."""
        done = mapped(output, "", self._putter(Role.OUTPUT, name, call))
        return self._joined(done) if outermost else done

    def _putter(self, role: Role, name: str, call: int) -> Callable[[str, Any], Any]:
        def put(slot: str, value: Any) -> Any:
            if isinstance(value, PackedSequence):
                self._packed(role, name, call, slot, value)
                return value
            return self._tap(role, name, call, slot, value)

        return put

    def _tap(
        self, role: Role, name: str, call: int, slot: str, tensor: torch.Tensor
    ) -> torch.Tensor:
        recording = self._recording
        values = values_of(tensor)
        if values is None:
            return tensor
        clock = recording.clock
        key = EventKey(
            clock.step, Phase.FORWARD, role, name, call, slot, clock.micro, recording.rank
        )
        if recording.wants(role, name):
            recording.tensor(Phase.FORWARD, role, name, values, call=call, slot=slot)
        given = self._forcing.value(key, tuple(tensor.shape))
        value = tensor.detach().clone() if given is None else _like(given, tensor)
        if not tensor.is_floating_point() or not torch.is_grad_enabled():
            return value
        gradient = EventKey(
            key.step, Phase.BACKWARD, GRADIENT_OF[role], name, call, slot, key.micro, key.rank
        )
        if not tensor.requires_grad and gradient not in self._forcing:
            return value
        tapped: torch.Tensor = _Tap.apply(tensor, self._anchor, value, self._arrived(gradient))  # type: ignore[no-untyped-call]
        if role is Role.OUTPUT:
            self._outputs.append(tapped)
        return tapped

    def _arrived(self, key: EventKey) -> Arrived:
        recording = self._recording

        def arrived(gradient: torch.Tensor) -> torch.Tensor:
            recording.clock.gradient_arrives()
            given = self._forcing.value(key, tuple(gradient.shape))
            # The join calls every tap: where nothing flows, zeros come, and nothing has arrived.
            nothing = given is not None and given.any() and not bool(gradient.any())
            values = None if nothing else values_of(gradient)
            if values is not None and recording.plan.takes(key.role, key.name):
                recording.tensor(
                    Phase.BACKWARD,
                    key.role,
                    key.name,
                    values,
                    call=key.call,
                    slot=key.slot,
                    step=key.step,
                    micro=key.micro,
                )
            return gradient if given is None else _like(given, gradient)

        return arrived

    def _joined(self, output: Any) -> Any:
        """The outermost output, through which a backward pass reaches every tap of this pass."""
        outputs, self._outputs = self._outputs, []
        joined = False

        def put(_: str, value: Any) -> Any:
            nonlocal joined
            if joined or not isinstance(value, torch.Tensor) or not value.requires_grad:
                return value
            joined = True
            return _Join.apply(value, *(one for one in outputs if one is not value))  # type: ignore[no-untyped-call]

        return mapped(output, "", put)


class _Tap(torch.autograd.Function):
    """Gives another value forward and, through what was handed in, another gradient backward."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any, tensor: torch.Tensor, anchor: torch.Tensor, value: torch.Tensor, arrived: Arrived
    ):
        ctx.arrived = arrived
        # A fresh tensor: an in-place operator behind a view would break.
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        return ctx.arrived(gradient), None, None, None


class _Join(torch.autograd.Function):
    """Its first tensor; backward, zeros to all others, so that their gradients are asked for."""

    @staticmethod
    def forward(ctx: Any, first: torch.Tensor, *others: torch.Tensor) -> Any:  # type: ignore[override]
        # Not the tensors: an in-place operator may have changed them since.
        ctx.likes = [(one.shape, one.dtype, one.device) for one in others]
        return first.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        return gradient, *(torch.zeros(s, dtype=d, device=place) for s, d, place in ctx.likes)


def mapped(value: Any, slot: str, put: Callable[[str, Any], Any]) -> Any:
    """The same nesting with every tensor replaced; slots as `tensors_in` names them."""
    if isinstance(value, (torch.Tensor, PackedSequence)):
        return put(slot, value)
    if isinstance(value, Mapping):
        changed = copy.copy(value)
        for key, entry in value.items():
            changed[key] = mapped(entry, _under(slot, str(key)), put)  # type: ignore[index]
        return changed
    if isinstance(value, (tuple, list)):
        fields = getattr(value, "_fields", None)
        names = fields or range(len(value))
        entries = [mapped(v, _under(slot, str(k)), put) for k, v in zip(names, value, strict=True)]
        return type(value)(*entries) if fields else type(value)(entries)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        changed = copy.copy(value)
        for key in value.__dataclass_fields__:
            entry = mapped(getattr(value, key), _under(slot, key), put)
            object.__setattr__(changed, key, entry)
        return changed
    return value


def _under(slot: str, key: str) -> str:
    return f"{slot}.{key}" if slot else key


def _like(array: np.ndarray[Any, Any], tensor: torch.Tensor) -> torch.Tensor:
    """The reference's values in the tensor's own dtype, on its device."""
    return torch.from_numpy(array).to(device=tensor.device, dtype=tensor.dtype)
