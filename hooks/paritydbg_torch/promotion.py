"""Promotes what a net computes to float64, casts and constants of its code included.

The nets' own parameters and buffers become float64; everything else of lower precision is promoted as
a function is called with it, and asked-for lower precisions are overridden: a norm that casts to
float32 inside would otherwise be no more exact than before. What is drawn at random keeps its
precision, and so its stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils._pytree import tree_map

_LOWER = frozenset({torch.float32, torch.float16, torch.bfloat16})
_CASTS = frozenset({torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16})


class Promotion(TorchFunctionMode):  # type: ignore[misc,unused-ignore]
    """One capture's promotion, on between `begin` and `end`.

    Args:
        nets: whose parameters and buffers become float64 for as long as the promotion is in place.
    """

    def __init__(self, nets: Iterable[object]) -> None:
        super().__init__()
        self._tensors = [(t, t.dtype) for net in nets for t in _tensors(net) if t.dtype in _LOWER]
        self._on = False
        for tensor, _ in self._tensors:
            tensor.data = tensor.data.to(torch.float64)
        self.__enter__()

    def begin(self) -> None:
        """Promote from now on."""
        self._on = True

    def end(self) -> None:
        """Compute as the code says again; the nets and their gradients stay in float64."""
        self._on = False

    def remove(self) -> None:
        """Give the nets their precisions back, and leave torch's functions alone again."""
        self._on = False
        for tensor, dtype in self._tensors:
            tensor.grad = None
            tensor.data = tensor.data.to(dtype)
        self._tensors = []
        # The script may have entered modes since, which stay.
        stack = _get_current_function_mode_stack()
        if self in stack:
            above = stack[stack.index(self) + 1 :]
            for _ in range(len(above) + 1):
                _pop_mode()
            for mode in above:
                _push_mode(mode)

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        arguments: tuple[Any, ...] = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:
        """The function on promoted arguments, where the promotion is on."""
        keywords = keywords or {}
        if not self._on:
            return function(*arguments, **keywords)
        if function in _CASTS:
            function = torch.Tensor.double
        # What is written to is the caller's own tensor: a promoted copy would be lost.
        written = 1 if _writes(getattr(function, "__name__", "")) else 0
        promoted = tree_map(_promoted, arguments[written:])
        named = {k: v if k == "out" else tree_map(_promoted, v) for k, v in keywords.items()}
        return function(*arguments[:written], *promoted, **named)


def _tensors(net: object) -> list[torch.Tensor]:
    if not isinstance(net, nn.Module):
        return []
    return list({id(t): t for t in (*net.parameters(), *net.buffers())}.values())


def _promoted(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype in _LOWER:
        return value.to(torch.float64)
    if isinstance(value, torch.dtype) and value in _LOWER:
        return torch.float64
    return value


def _writes(name: str) -> bool:
    """Whether a function of that name changes its first argument: ``add_``, ``__iadd__``, ``__setitem__``."""
    if name.startswith("__"):
        return name in ("__set__", "__setitem__") or (
            name.startswith("__i") and name not in ("__int__", "__index__", "__invert__")
        )
    return name.endswith("_")
