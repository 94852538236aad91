"""Taps on torch modules, as custom autograd functions; what they record and give is told in the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import PackedSequence

from paritydbg.model.event import Role, Values
from paritydbg.session import taps
from paritydbg.session.forcing import Forcing
from paritydbg.session.recording import Recording
from paritydbg_torch.packed import Padding
from paritydbg_torch.values import NESTING, values_of

Arrived = Callable[[torch.Tensor], torch.Tensor]
PaddingOf = Callable[[str, PackedSequence], Padding]


class TorchTaps(taps.Taps):
    """The taps of one recorder.

    Args:
        recording, forcing: as for `paritydbg.session.taps.Taps`.
        padding: how a packed sequence that a layer of that name is given lies in the dump.
    """

    def __init__(self, recording: Recording, forcing: Forcing, padding: PaddingOf) -> None:
        super().__init__(NESTING, recording, forcing)
        self._padding = padding
        # Keeps a tap differentiable behind a detach: its backward is called all the same.
        self._anchor = torch.zeros((), requires_grad=True)

    def tap(
        self,
        role: Role,
        name: str,
        call: int,
        slot: str,
        tensor: Any,
        layout: taps.Layout | None = None,
    ) -> Any:
        """Record one tensor, and give what takes its place."""
        if not isinstance(tensor, PackedSequence):
            return super().tap(role, name, call, slot, tensor, layout)
        padding = self._padding(name, tensor)
        layout = taps.Layout(padding.pad, padding.pack)
        rows = super().tap(role, name, call, slot, tensor.data, layout)
        # Not _replace: a packed sequence checks its parts where it is made.
        return PackedSequence(rows, *tensor[1:])

    def values(self, tensor: Any) -> Values | None:
        """A copy of a tensor's values, None where they cannot be read."""
        return values_of(tensor)

    def like(self, array: NDArray[Any], tensor: Any) -> Any:
        """The array as a tensor of the other's dtype, on its device."""
        return torch.from_numpy(array).to(device=tensor.device, dtype=tensor.dtype)

    def copy_of(self, tensor: Any, values: Values) -> Any:
        """A tensor of the same values that no gradient flows through."""
        return tensor.detach().clone()

    def flows_back(self, tensor: Any, wanted: bool) -> bool:
        """Whether a gradient is asked for at a tensor."""
        flows = tensor.is_floating_point() and torch.is_grad_enabled()
        return flows and (tensor.requires_grad or wanted)

    def leads_back(self, tensor: Any) -> bool:
        """Whether a backward pass may start at an output."""
        return isinstance(tensor, torch.Tensor) and tensor.requires_grad

    def tapped(self, tensor: Any, value: Any, arrived: Arrived, wanted: bool) -> Any:
        """``value``, through which a gradient flows back to ``tensor`` by way of ``arrived``."""
        return _Tap.apply(tensor, self._anchor, value, arrived)  # type: ignore[no-untyped-call]

    def join(self, first: Any, others: list[Any]) -> Any:
        """``first``, whose backward pass sends zeros to the others, so that their taps are called."""
        return _Join.apply(first, *others)  # type: ignore[no-untyped-call]


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
