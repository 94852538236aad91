"""Mutations of names and of the order of definition; layers and order of execution stay."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from torch import nn

from alignbed.rewiring import register_as, register_in_order

# Words that say nothing about what a layer does.
_SYLLABLES = ("ba", "do", "fi", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "to", "vi", "zu")


def arbitrary(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    """Every layer under a made-up word; children of lists keep their numbers."""
    return _renamed(net, lambda layer: True)


def containers(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    """Every layer that holds others under a made-up word."""
    return _renamed(net, lambda layer: bool(layer._modules))


def leaves(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    """Every layer that holds no others under a made-up word."""
    return _renamed(net, lambda layer: not layer._modules)


def defined_in_reverse(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    """Children registered last to first, where the order of registration is not that of calls."""
    for parent in list(net.modules()):
        if not isinstance(parent, (nn.Sequential, nn.ModuleList)):
            register_in_order(parent, list(parent._modules)[::-1])
    return net


def two_defined_in_reverse(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    """The first two children of every layer registered the other way round."""
    for parent in list(net.modules()):
        if not isinstance(parent, (nn.Sequential, nn.ModuleList)):
            names = list(parent._modules)
            register_in_order(parent, names[:2][::-1] + names[2:])
    return net


def _renamed(net: nn.Module, wanted: Callable[[nn.Module], bool]) -> nn.Module:
    # The same word for the same name: a port is consistent in what it calls things.
    words: dict[str, str] = {}
    made = random.Random(0)
    for parent in list(net.modules()):
        new: dict[str, str] = {}
        for name, child in parent._modules.items():
            if child is not None and wanted(child) and not name.isdigit():
                if name not in words:
                    words[name] = "".join(made.choices(_SYLLABLES, k=3))
                new[name] = words[name]
        register_as(parent, new)
    return net
