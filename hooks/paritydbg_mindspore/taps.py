"""Taps on cells, as custom functions, which work in PyNative alone; what they record and give is told in
the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor
from mindspore.common._grad_function import _Function
from numpy.typing import NDArray

from paritydbg.model.event import Values
from paritydbg.session import taps
from paritydbg.session.forcing import Forcing
from paritydbg.session.recording import Recording
from paritydbg_mindspore.tape import gradients_are_on
from paritydbg_mindspore.values import NESTING, values_of

Arrived = Callable[[Tensor], Tensor]


class MindSporeTaps(taps.Taps):
    """The taps of one recorder.

    Args:
        recording, forcing: as for `paritydbg.session.taps.Taps`.
        anchor: a parameter that is differentiated; it keeps a tap's backward called where the tapped
            tensor needs no gradient itself. None where the net has none.
    """

    def __init__(self, recording: Recording, forcing: Forcing, anchor: Parameter | None) -> None:
        super().__init__(NESTING, recording, forcing)
        self._anchor = anchor

    def values(self, tensor: Any) -> Values | None:
        """A copy of a tensor's values, None where they cannot be read."""
        return values_of(tensor)

    def like(self, array: NDArray[Any], tensor: Any) -> Any:
        """The array as a tensor of the other's dtype."""
        return Tensor(np.array(array, order="C"), tensor.dtype)

    def copy_of(self, tensor: Any, values: Values) -> Any:
        """A tensor of the same values that no gradient flows through."""
        return self.like(values.decoded(), tensor)

    def flows_back(self, tensor: Any, wanted: bool) -> bool:
        """Whether a gradient may be asked for; MindSpore does not tell for a single tensor."""
        return self.leads_back(tensor)

    def leads_back(self, tensor: Any) -> bool:
        """Whether a backward pass may start at an output."""
        return "Float" in str(tensor.dtype) and gradients_are_on()

    def tapped(self, tensor: Any, value: Any, arrived: Arrived, wanted: bool) -> Any:
        """``value``, through which a gradient flows back to ``tensor`` by way of ``arrived``."""
        # The anchor asks for a gradient where the reference has one.
        return _Tap.apply(tensor, self._anchor if wanted else None, value, arrived)

    def join(self, first: Any, others: list[Any]) -> Any:
        """``first``, whose backward pass sends zeros to the others, so that their taps are called."""
        return _Join.apply(first, *others)


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
