"""The layers of one side as a tree, with what identifies each: kind, own parameters, all below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paritydbg.model.record import LayerRecord, ParameterRecord
from paritydbg.weights.families import kind
from paritydbg.weights.rules import DROPPED, WRAPPERS, canonical_parameter
from paritydbg.weights.shapes import Shape, plain

# The parameters a layer owns: canonical last name and layout-free shape, sorted by name.
Signature = tuple[tuple[str, Shape], ...]


@dataclass(frozen=True)
class Node:
    """One layer.

    Attributes:
        name: dotted; ``""`` is the net.
        parent: name of the layer it lies in, None for the topmost.
        kind: see `families.kind`; ``""`` where unknown.
        own: what it owns itself.
        below: ``own`` of every layer from this one down that owns anything, in order.
        children: names of the layers directly inside, in order of registration.
        leaf: whether there are none.
    """

    name: str
    parent: str | None
    kind: str
    own: Signature
    below: tuple[Signature, ...]
    children: tuple[str, ...]

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]

    @property
    def leaf(self) -> bool:
        """Whether no layer lies inside."""
        return not self.children

    @property
    def wrapper(self) -> bool:
        """Whether the layer is there only because of how the net was wrapped."""
        return self.last in WRAPPERS and not self.own


@dataclass(frozen=True)
class Tree:
    """All layers of one side by name, in order of registration, and who owns which parameter."""

    nodes: Mapping[str, Node]
    owned: Mapping[str, tuple[ParameterRecord, ...]]

    @property
    def owners(self) -> tuple[str, ...]:
        """Names of the layers that own parameters, in order."""
        return tuple(name for name in self.nodes if self.owned.get(name))


def build_tree(layers: Sequence[LayerRecord], parameters: Sequence[ParameterRecord]) -> Tree:
    """The tree of one side; layers that only the parameters' names tell of are filled in."""
    kinds: dict[str, str] = {}
    for layer in layers:
        kinds.setdefault(layer.name, kind(layer.type))
    owned: dict[str, list[ParameterRecord]] = {}
    for parameter in parameters:
        owned.setdefault(parameter.layer, []).append(parameter)
    names = _with_ancestors([*kinds, *owned])
    parents = {name: _parent(name) for name in names}
    children: dict[str, list[str]] = {name: [] for name in names}
    for name, parent in parents.items():
        if parent is not None:
            children[parent].append(name)
    own = {name: _signature(owned.get(name, [])) for name in names}
    below: dict[str, tuple[Signature, ...]] = {}
    for name in sorted(names, key=lambda name: -name.count(".") - bool(name)):
        inside = tuple(part for child in children[name] for part in below[child])
        below[name] = ((own[name],) if own[name] else ()) + inside
    nodes = {
        name: Node(
            name, parents[name], kinds.get(name, ""), own[name], below[name], tuple(children[name])
        )
        for name in names
    }
    return Tree(nodes, {name: tuple(records) for name, records in owned.items()})


def _signature(parameters: Sequence[ParameterRecord]) -> Signature:
    found = []
    for parameter in parameters:
        last = parameter.name.rpartition(".")[2]
        if last not in DROPPED:
            found.append((canonical_parameter(last), plain(parameter.shape)))
    return tuple(sorted(found))


def _with_ancestors(names: Sequence[str]) -> dict[str, None]:
    """The names and all that they lie in, each before what lies inside it."""
    found: dict[str, None] = {"": None}
    for name in names:
        parts = name.split(".") if name else []
        for length in range(1, len(parts) + 1):
            found.setdefault(".".join(parts[:length]), None)
    return found


def _parent(name: str) -> str | None:
    return name.rpartition(".")[0] if name else None
