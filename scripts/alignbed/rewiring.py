"""Ways to register a torch net's layers otherwise than its forward functions call them.

A layer's forward looks its children up by name. A stand-in answers to such a name in place of the
child, so that children can be renamed, moved, joined or left out with every forward as it is. What
single mutations do with that belongs into `mutations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn


@dataclass(frozen=True)
class Origin:
    """Where a layer comes from; rides on the layer, so that copies and moves keep it.

    Attributes:
        layer: its name in the reference, None for a layer that the reference has not.
        parameters: own parameters that stand for several of the reference, or for one of another
            layer: local name -> the reference's names.
        free: whether any partner is as good as none: wrappers, and the net inside them.
        free_events: whether that holds for its calls alone, since it computes something else.
    """

    layer: str | None = None
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    free: bool = False
    free_events: bool = False


def mark(net: nn.Module) -> None:
    """Note on every layer of a reference that it stands for itself."""
    for name, layer in net.named_modules():
        layer._bed_origin = Origin(name)


def origin(layer: nn.Module) -> Origin:
    """Where the layer comes from."""
    found = getattr(layer, "_bed_origin", None)
    return found if isinstance(found, Origin) else Origin()


def disown(layer: nn.Module) -> nn.Module:
    """The layer, itself and all inside now of no origin."""
    for inner in layer.modules():
        inner._bed_origin = Origin()
    return layer


def set_free(layer: nn.Module, free: bool = False, free_events: bool = False) -> nn.Module:
    """The layer, on which nothing (or nothing about its calls) is claimed any more."""
    layer._bed_origin = replace(origin(layer), free=free, free_events=free_events)
    return layer


class _StandsIn:
    """Answers for children that stand-ins replace; mixed into a layer's class."""

    def __getattr__(self, name: str) -> Any:
        stand_ins = self.__dict__.get("_bed_stand_ins", {})
        if name in stand_ins:
            return stand_ins[name]
        return super().__getattr__(name)  # type: ignore[misc]


def stand_in(parent: nn.Module, name: str, for_it: object) -> None:
    """Let the parent's forward get ``for_it`` where it asks for its child of that name."""
    stand_ins = parent.__dict__.get("_bed_stand_ins")
    if stand_ins is None:
        _mix_in(parent, _StandsIn)
        stand_ins = parent.__dict__["_bed_stand_ins"] = {}
    stand_ins[name] = for_it


def take_out(parent: nn.Module, name: str, for_it: object) -> nn.Module:
    """The child of that name, no longer registered; the parent's forward gets ``for_it``."""
    child = child_of(parent, name)
    del parent._modules[name]
    stand_in(parent, name, for_it)
    return child


def called(parent: nn.Module, name: str) -> Any:
    """What the parent's forward gets where it asks for that child."""
    stand_ins: dict[str, Any] = parent.__dict__.get("_bed_stand_ins", {})
    return stand_ins.get(name) or parent._modules[name]


def child_of(parent: nn.Module, name: str) -> nn.Module:
    """The registered child of that name."""
    child = parent._modules[name]
    if child is None:
        raise ValueError(f"{type(parent).__name__} has no layer under {name!r}")
    return child


def register_as(parent: nn.Module, names: Mapping[str, str]) -> None:
    """Rename children in place: order of registration and forward stay."""
    by_position = isinstance(parent, (nn.Sequential, nn.ModuleList))
    children = dict(parent._modules)
    parent._modules.clear()
    for old, child in children.items():
        new = names.get(old, old)
        if new != old and not by_position:
            stand_in(parent, old, called_before(parent, old, child))
        parent._modules[new] = child


def called_before(parent: nn.Module, name: str, child: nn.Module | None) -> object:
    """What stood in for the child so far, the child itself if nothing did."""
    return parent.__dict__.get("_bed_stand_ins", {}).get(name, child)


def register_in_order(parent: nn.Module, names: list[str]) -> None:
    """Register the same children in another order."""
    children = dict(parent._modules)
    parent._modules.clear()
    for name in names:
        parent._modules[name] = children[name]


def run_in_order(blocks: nn.Module, order: list[int]) -> None:
    """Let a list of blocks run in another order than it is registered in."""

    class InOrder:
        def __iter__(self) -> Iterator[nn.Module]:
            children = list(self._modules.values())  # type: ignore[attr-defined]
            return iter([children[place] for place in order])

    _mix_in(blocks, InOrder)


def put_before(parent: nn.Module, name: str, new: str, layer: nn.Module) -> None:
    """Register a new layer just before a child, through which the child's first input goes."""
    inner = called(parent, name)

    def through(x: Any, *rest: Any) -> Any:
        return inner(layer(x), *rest)

    children = dict(parent._modules)
    parent._modules.clear()
    for old, child in children.items():
        if old == name:
            parent._modules[new] = layer
        parent._modules[old] = child
    stand_in(parent, name, through)


def in_turn(layers: list[Any]) -> Callable[..., Any]:
    """A function that calls one after the other, from call to call, and then the first again."""
    count = 0

    def call(*arguments: Any) -> Any:
        nonlocal count
        layer = layers[count % len(layers)]
        count += 1
        return layer(*arguments)

    return call


def _mix_in(layer: nn.Module, mixin: type) -> None:
    """Give one layer a class of its own that is called like the old one."""
    kind = type(layer)
    mixed = type(kind.__name__, (mixin, kind), {"__module__": kind.__module__})
    layer.__class__ = mixed
