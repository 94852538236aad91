"""Mutations of layers that hold no others: as functions, in several, joined, folded, surrounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from alignbed.rewiring import (
    Origin,
    called,
    child_of,
    in_turn,
    origin,
    put_before,
    set_free,
    stand_in,
    take_out,
)

Build = Callable[[nn.Module, Mapping[str, int]], "nn.Module | None"]

_ACTIVATIONS = (nn.ReLU, nn.GELU, nn.SiLU, nn.LeakyReLU)
_POOLS = (nn.MaxPool2d, nn.AdaptiveAvgPool2d)
_FUSED = (
    ("qkv", ("query", "key", "value")),
    ("qkv_proj", ("q_proj", "k_proj", "v_proj")),
    ("gate_up_proj", ("gate_proj", "up_proj")),
)


def _parents(net: nn.Module) -> list[nn.Module]:
    """Layers whose forward asks for their children by name."""
    return [
        layer
        for layer in net.modules()
        if layer._modules and not isinstance(layer, (nn.Sequential, nn.ModuleList))
    ]


def _plain_leaf(layer: nn.Module | None) -> bool:
    return layer is not None and not (layer._modules or layer._parameters or layer._buffers)


def functional(activations_only: bool) -> Build:
    """Layers without parameters called as functions."""

    def build(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
        found = False
        for parent in _parents(net):
            for name, child in list(parent._modules.items()):
                if isinstance(child, _ACTIVATIONS) or (not activations_only and _plain_leaf(child)):
                    take_out(parent, name, child_of(parent, name).forward)
                    found = True
        return net if found else None

    return build


def identities(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """An Identity or a Dropout that drops nothing before every convolution and dense layer."""
    for parent in list(net.modules()):
        for number, (name, child) in enumerate(list(parent._modules.items())):
            if not isinstance(child, (nn.Linear, nn.Conv2d)):
                continue
            new = nn.Dropout(0.0) if number % 2 else nn.Identity()
            if isinstance(parent, nn.Sequential):
                children = [layer for layer in parent._modules.values() if layer is not None]
                children.insert(children.index(child), new)
                parent._modules.clear()
                parent._modules.update({str(n): layer for n, layer in enumerate(children)})
            else:
                put_before(parent, name, f"pre_{name}", new)
    return net


def flatten_layer(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """A Flatten before the first dense layer of a net of images."""
    if not any(isinstance(layer, nn.Conv2d) for layer in net.modules()):
        return None
    for name, child in list(net._modules.items()):
        if isinstance(child, nn.Linear):
            put_before(net, name, "flatten", nn.Flatten())
            return net
    return None


def unshared(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """Of every layer that runs several times in a pass one for each time."""
    found = False
    for parent in _parents(net):
        children = dict(parent._modules)
        parent._modules.clear()
        for name, child in children.items():
            count = calls.get(origin(child).layer or "", 1) if child is not None else 1
            if child is None or not _plain_leaf(child) or count < 2:
                parent._modules[name] = child
                continue
            layers = [_twin(child) for _ in range(count)]
            parent._modules.update({f"{name}{n + 1}": layer for n, layer in enumerate(layers)})
            stand_in(parent, name, in_turn(layers))
            found = True
    return net if found else None


def _twin(layer: nn.Module) -> nn.Module:
    twin = type(layer).__new__(type(layer))
    nn.Module.__init__(twin)
    twin.__dict__.update({k: v for k, v in vars(layer).items() if not k.startswith("_")})
    twin._bed_origin = origin(layer)
    return twin


def pool_before_activation(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """The first pools of a net run before the activation that they follow in the reference."""
    relu = net._modules.get("relu")
    pools = [name for name, child in net._modules.items() if isinstance(child, nn.MaxPool2d)]
    if relu is None or not pools:
        return None
    for name in pools:
        _swap_with(net, name, relu)
    rest = calls["relu"] - len(pools)
    stand_in(net, "relu", in_turn([_unchanged] * len(pools) + [relu] * rest))
    return net


def _swap_with(parent: nn.Module, name: str, activation: nn.Module) -> None:
    pool = called(parent, name)
    stand_in(parent, name, lambda x: activation(pool(x)))


def _unchanged(x: Any) -> Any:
    return x


def norms_folded(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
    """Every batch norm behind a convolution gone, its scale and shift in the convolution."""
    found = False
    for parent in list(net.modules()):
        names = list(parent._modules)
        for before, name in zip(names, names[1:], strict=False):
            conv, norm = parent._modules.get(before), parent._modules.get(name)
            if not isinstance(conv, nn.Conv2d) or not isinstance(norm, nn.BatchNorm2d):
                continue
            _fold(conv, norm)
            if isinstance(parent, nn.Sequential):
                del parent._modules[name]
            else:
                take_out(parent, name, _unchanged)
            found = True
    return net if found else None


def _fold(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).detach()
    conv.weight = nn.Parameter(conv.weight.detach() * scale[:, None, None, None])
    conv.bias = nn.Parameter((norm.bias - norm.running_mean * scale).detach())
    # Its output is that of the norm.
    set_free(conv, free_events=True)


def fused(word: str) -> Build:
    """Projections of the same input as one layer, under a usual name or a given one."""

    def build(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
        found = False
        for parent in _parents(net):
            for name, parts in _FUSED:
                if all(isinstance(parent._modules.get(part), nn.Linear) for part in parts):
                    _fuse(parent, f"{word}_{len(parts)}" if word else name, parts)
                    found = True
        return net if found else None

    return build


def _fuse(parent: nn.Module, name: str, parts: tuple[str, ...]) -> None:
    layers = [child_of(parent, part) for part in parts]
    widths = [layer.weight.shape[0] for layer in layers]
    whole = nn.Linear(layers[0].weight.shape[1], sum(widths), layers[0].bias is not None)
    origins = {}
    with torch.no_grad():
        for own in whole._parameters:
            if whole._parameters[own] is not None:
                getattr(whole, own).copy_(torch.cat([getattr(layer, own) for layer in layers]))
                origins[own] = tuple(f"{origin(layer).layer}.{own}" for layer in layers)
    whole._bed_origin = Origin(None, origins)
    kept: list[Any] = []

    def first(x: Any) -> Any:
        kept[:] = whole(x).split(widths, dim=-1)
        return kept[0]

    children = dict(parent._modules)
    parent._modules.clear()
    for old, child in children.items():
        if old == parts[0]:
            parent._modules[name] = whole
        if old not in parts:
            parent._modules[old] = child
    stand_in(parent, parts[0], first)
    for number, part in enumerate(parts[1:], start=1):
        stand_in(parent, part, lambda x, number=number: kept[number])
