"""Mutations that put a net into another one, as trainers, parallel runs and compilers do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from alignbed.rewiring import set_free


class Wrapper(nn.Module):
    """A net that holds another one under a name and runs it."""

    def __init__(self, name: str, net: nn.Module) -> None:
        super().__init__()
        self._held = name
        setattr(self, name, net)

    def forward(self, *arguments: Any) -> Any:
        return getattr(self, self._held)(*arguments)


def named(*names: str) -> Callable[[nn.Module, Mapping[str, int]], nn.Module]:
    """The net inside a wrapper for each name, the first one outermost."""

    def build(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
        set_free(net, free=True)
        for name in reversed(names):
            net = set_free(Wrapper(name, net), free=True)
        return net

    return build


def data_parallel(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    """The net inside PyTorch's DataParallel."""
    return nn.DataParallel(net)


def compiled(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    """The net inside torch.compile, with the backend that runs it as it is."""
    found: nn.Module = torch.compile(net, backend="eager")  # type: ignore[assignment]
    return found
