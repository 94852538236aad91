"""Taps on cells: what comes in and goes out is recorded, then replaced by the reference's values.

Each layer so sees what the reference's layer saw, forward and backward, and its error is its own.
A custom function does the replacing; it works in PyNative alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor
from mindspore.common._grad_function import _Function

from paritydbg.model.event import GRADIENT_OF, EventKey, Phase, Role
from paritydbg.session.forcing import Forcing
from paritydbg.session.recording import Recording
from paritydbg_mindspore.tape import gradients_are_on
from paritydbg_mindspore.values import values_of

Arrived = Callable[[Tensor], Tensor]


class Taps:
    """The taps of one recorder.

    Args:
        recording: where everything goes that comes by.
        forcing: the reference's values.
        anchor: a parameter that is differentiated; it keeps a tap's backward called where the tapped
            tensor needs no gradient itself. None where the net has none.
    """

    def __init__(self, recording: Recording, forcing: Forcing, anchor: Parameter | None) -> None:
        self._recording = recording
        self._forcing = forcing
        self._anchor = anchor
        self._outputs: list[Tensor] = []

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

    def _putter(self, role: Role, name: str, call: int) -> Callable[[str, Tensor], Tensor]:
        def put(slot: str, tensor: Tensor) -> Tensor:
            return self._tap(role, name, call, slot, tensor)

        return put

    def _tap(self, role: Role, name: str, call: int, slot: str, tensor: Tensor) -> Tensor:
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
        value = _like(values.decoded() if given is None else given, tensor)
        if "Float" not in str(tensor.dtype) or not gradients_are_on():
            return value
        gradient = EventKey(
            key.step, Phase.BACKWARD, GRADIENT_OF[role], name, call, slot, key.micro, key.rank
        )
        # Nothing tells whether MindSpore will ask for a gradient here; the anchor asks for it where
        # the reference has one.
        anchor = self._anchor if gradient in self._forcing else None
        tapped: Tensor = _Tap.apply(tensor, anchor, value, self._arrived(gradient))
        if role is Role.OUTPUT:
            self._outputs.append(tapped)
        return tapped

    def _arrived(self, key: EventKey) -> Arrived:
        recording = self._recording

        def arrived(gradient: Tensor) -> Tensor:
            recording.clock.gradient_arrives()
            values = values_of(gradient)
            if values is None:
                return gradient
            given = self._forcing.value(key, tuple(gradient.shape))
            # The join calls every tap: where nothing flows, zeros come, and nothing has arrived.
            nothing = given is not None and given.any() and not values.array.any()
            if not nothing and recording.plan.takes(key.role, key.name):
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
        joined = not gradients_are_on()

        def put(_: str, value: Tensor) -> Tensor:
            nonlocal joined
            if joined or "Float" not in str(value.dtype):
                return value
            joined = True
            done: Tensor = _Join.apply(value, *(one for one in outputs if one is not value))
            return done

        return mapped(output, "", put)


class _Tap(_Function):  # type: ignore[misc]
    """Gives another value forward and, through what was handed in, another gradient backward."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, anchor: Tensor | None, value: Tensor, arrived: Arrived
    ) -> Tensor:
        ctx.arrived = arrived
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        # None counts as zero.
        return ctx.arrived(gradient), None, None, None


class _Join(_Function):  # type: ignore[misc]
    """Its first tensor; backward, zeros to all others, so that their gradients are asked for."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, *others: Tensor) -> Tensor:
        ctx.likes = [(tuple(one.shape), one.dtype) for one in others]
        return Tensor(np.array(first.asnumpy(), order="C"), first.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        zeros = (Tensor(np.zeros(shape, np.float32), dtype) for shape, dtype in ctx.likes)
        return gradient, *zeros


def mapped(value: Any, slot: str, put: Callable[[str, Tensor], Tensor]) -> Any:
    """The same nesting with every tensor replaced; slots as `tensors_in` names them."""
    if isinstance(value, Tensor):
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
    return value


def _under(slot: str, key: str) -> str:
    return f"{slot}.{key}" if slot else key


def _like(array: np.ndarray[Any, Any], tensor: Tensor) -> Tensor:
    """The reference's values in the tensor's own dtype."""
    return Tensor(np.array(array, order="C"), tensor.dtype)
