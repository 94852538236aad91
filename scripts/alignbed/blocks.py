"""Mutations of blocks and of the containers around them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from alignbed.rewiring import (
    child_of,
    disown,
    register_as,
    run_in_order,
    set_free,
    stand_in,
)

Build = Callable[[nn.Module, Mapping[str, int]], "nn.Module | None"]


class Nested(nn.Module):
    """A container around one block."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, *arguments: Any) -> Any:
        return self.block(*arguments)


def lists_of_blocks(net: nn.Module) -> list[nn.Module]:
    """Lists with at least three blocks, the longest first."""
    found = [
        layer
        for layer in net.modules()
        if isinstance(layer, (nn.Sequential, nn.ModuleList)) and len(layer) >= 3
    ]
    return sorted(found, key=lambda layer: -len(layer._modules))


def make_equal(net: nn.Module) -> None:
    """Give all blocks of a list that look alike the weights of the first such one."""
    for blocks in lists_of_blocks(net):
        first: dict[object, nn.Module] = {}
        for block in blocks.children():
            looks = tuple((name, tuple(t.shape)) for name, t in block.state_dict().items())
            model = first.setdefault(looks, block)
            block.load_state_dict(model.state_dict())


def nested(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """Every block of a list inside a container of its own."""
    found = lists_of_blocks(net)
    for blocks in found:
        for name in list(blocks._modules):
            # What is wrapped and what wraps it end the same way round: either may be the block.
            block = set_free(child_of(blocks, name), free=True)
            blocks._modules[name] = set_free(Nested(block), free=True)
    return net if found else None


def regrouped(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """A list of blocks cut into two lists inside one."""
    found = False
    for parent in list(net.modules()):
        for name, blocks in list(parent._modules.items()):
            if isinstance(blocks, nn.ModuleList) and len(blocks) >= 3:
                members = list(blocks)
                half = len(members) // 2
                parts = [nn.ModuleList(members[:half]), nn.ModuleList(members[half:])]
                stages = nn.ModuleList(set_free(part, free=True) for part in parts)
                stand_in(parent, name, blocks)
                parent._modules[name] = set_free(stages, free=True)
                found = True
    return net if found else None


def flattened(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """Containers inside blocks dissolved: their children lie beside them, under joined names."""
    found = False
    for parent in reversed(list(net.modules())):
        if parent is net or isinstance(parent, (nn.Sequential, nn.ModuleList)):
            continue
        found |= _dissolve(parent, lambda child: True)
    if not found:
        found = _dissolve(net, lambda child: not isinstance(child, (nn.Sequential, nn.ModuleList)))
    return net if found else None


def lists_flattened(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """Blocks of lists registered in the net itself: ``layers.0`` as ``layers_0``."""
    found = _dissolve(
        net, lambda child: isinstance(child, (nn.Sequential, nn.ModuleList)) and len(child) >= 3
    )
    return net if found else None


def _dissolve(parent: nn.Module, wanted: Callable[[nn.Module], bool]) -> bool:
    """Register the children of containers in the parent; whether there was any."""
    children = dict(parent._modules)
    parent._modules.clear()
    found = False
    for name, child in children.items():
        own = child is None or child._parameters or child._buffers
        if child is None or own or not child._modules or not wanted(child):
            parent._modules[name] = child
            continue
        found = True
        stand_in(parent, name, child)
        for inner, grandchild in child._modules.items():
            parent._modules[f"{name}_{inner}"] = grandchild
    return found


def missing(place: int | None, renumber: bool = True) -> Build:
    """The longest list without one block, by default the middle one."""

    def build(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
        found = lists_of_blocks(net)
        if not found:
            return None
        names = list(found[0]._modules)
        del found[0]._modules[names[len(names) // 2 if place is None else place]]
        if renumber:
            _number(found[0])
        return net

    return build


def extra(last: bool) -> Build:
    """The longest list with one more block, which looks like its neighbour and has other weights."""

    def build(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
        found = lists_of_blocks(net)
        if not found:
            return None
        blocks = found[0]
        children = list(blocks.children())
        place = len(children) if last else len(children) // 2
        new = disown(copy.deepcopy(children[place - 1]))
        with torch.no_grad():
            for parameter in new.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
        blocks._modules.clear()
        for number, child in enumerate([*children[:place], new, *children[place:]]):
            blocks._modules[str(number)] = child
        return net

    return build


def _number(blocks: nn.Module) -> None:
    names = {old: str(number) for number, old in enumerate(blocks._modules)}
    register_as(blocks, names)


def run_swapped(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """Two blocks in the middle of the longest list run the other way round."""
    found = lists_of_blocks(net)
    if not found:
        return None
    run_in_order(found[0], _swapped(len(found[0]._modules)))
    return net


def defined_and_run_swapped(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """Two blocks in the middle of the longest list the other way round, under their old numbers."""
    found = lists_of_blocks(net)
    if not found:
        return None
    children = list(found[0]._modules.items())
    found[0]._modules.clear()
    for place in _swapped(len(children)):
        name, child = children[place]
        found[0]._modules[name] = child
    return net


def _swapped(count: int) -> list[int]:
    order = list(range(count))
    middle = count // 2
    order[middle - 1 : middle + 1] = [middle, middle - 1]
    return order
