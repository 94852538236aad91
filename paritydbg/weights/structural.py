"""Layers joined by what they own and by their order of registration, where names tell nothing.

Never a guess: a group of layers that look alike is joined only if both sides have equally many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paritydbg.weights.matching import Matching, descend, in_order
from paritydbg.weights.tree import Node, Signature, Tree

# Confidence of a layer that is the only one of its looks, and of one told apart by order alone.
ALONE = 0.8
BY_ORDER = 0.6


def pair_by_structure(matching: Matching, by_order: bool = True) -> None:
    """Join free layers inside pairs by all that lies below them, then owners between anchors.

    Args:
        by_order: whether layers that look alike are told apart by their order of registration.
    """

    def siblings(matching: Matching, reference: str, port: str) -> None:
        _siblings_by_weights(matching, reference, port, by_order)

    descend(matching, siblings)
    _owners_between_anchors(matching, by_order)
    _parents(matching)
    descend(matching, siblings)


def _siblings_by_weights(matching: Matching, reference: str, port: str, by_order: bool) -> None:
    left, right = matching.free_children(reference, port)
    left, right = _open_up(matching, left, right)
    keys = _shared_keys([n.below for n in left], [n.below for n in right], by_order)
    for below, confidence in keys.items():
        mine = [node for node in left if node.below == below]
        yours = [node for node in right if node.below == below]
        for one, other in zip(mine, yours, strict=True):
            matching.join(one.name, other.name, "sequence", confidence)


def _open_up(
    matching: Matching, left: list[Node], right: list[Node]
) -> tuple[list[Node], list[Node]]:
    """The siblings, with containers that have no equal on the other side replaced by their insides."""
    while True:
        wholes = {node.below for node in left} & {node.below for node in right}
        opened_left = _opened(left, matching.reference, wholes, set(matching.to_port))
        opened_right = _opened(right, matching.port, wholes, set(matching.to_reference))
        # Opening pays only while the other side has something left to meet what comes out.
        if not opened_left or not opened_right or (opened_left, opened_right) == (left, right):
            return left, right
        left, right = opened_left, opened_right


def _opened(
    nodes: Sequence[Node], tree: Tree, wholes: set[tuple[Signature, ...]], taken: set[str]
) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        if node.below in wholes or node.own or node.leaf:
            found.append(node)
        else:
            found += [tree.nodes[child] for child in node.children if child not in taken]
    return [node for node in found if node.below]


def _owners_between_anchors(matching: Matching, by_order: bool) -> None:
    """Join free owners that lie between the same two pairs, where looks and numbers leave no choice."""
    anchors = in_order(matching)
    left = _gaps(matching.reference, [name for name, _ in anchors], set(matching.to_port))
    right = _gaps(matching.port, [name for _, name in anchors], set(matching.to_reference))
    for mine, yours in zip(left, right, strict=True):
        keys = _shared_keys([(n.own,) for n in mine], [(n.own,) for n in yours], by_order)
        for (own,), confidence in keys.items():
            pairs = zip(
                [node for node in mine if node.own == own],
                [node for node in yours if node.own == own],
                strict=True,
            )
            for one, other in pairs:
                matching.join(one.name, other.name, "sequence", confidence - 0.1)


def _gaps(tree: Tree, anchors: Sequence[str], taken: set[str]) -> list[list[Node]]:
    """Free owners before the first anchor, between each two, and after the last."""
    places = {name: place + 1 for place, name in enumerate(anchors)}
    gaps: list[list[Node]] = [[] for _ in range(len(anchors) + 1)]
    current = 0
    for name in tree.owners:
        current = places.get(name, current)
        if name not in taken and tree.nodes[name].own:
            gaps[current].append(tree.nodes[name])
    return gaps


def _parents(matching: Matching) -> None:
    """Join free containers whose joined children lie in one container of the other side, and back."""
    there = {name: pair.port for name, pair in matching.to_port.items()}
    back = {name: pair.reference for name, pair in matching.to_reference.items()}
    for name in sorted(matching.reference.nodes, key=lambda name: -name.count(".")):
        if name in there or not name:
            continue
        home = _home(matching.reference, matching.port, name, there)
        if home and _home(matching.port, matching.reference, home, back) == name:
            matching.join(name, home, "derived", ALONE)
            there[name], back[home] = home, name


def _home(tree: Tree, other: Tree, name: str, partners: Mapping[str, str]) -> str:
    """The one layer that the partners of a layer's children lie in, ``""`` if there is no such one."""
    homes = set()
    for child in tree.nodes[name].children:
        if child in partners and partners[child] in other.nodes:
            homes.add(other.nodes[partners[child]].parent)
    (home,) = homes if len(homes) == 1 else ("",)
    return home or ""


def _shared_keys(
    left: Sequence[tuple[Signature, ...]],
    right: Sequence[tuple[Signature, ...]],
    by_order: bool,
) -> dict[tuple[Signature, ...], float]:
    """The looks that both sides have equally often, with the confidence of pairs made by them."""
    found: dict[tuple[Signature, ...], float] = {}
    for below in left:
        count = left.count(below)
        if any(below) and count == right.count(below) and (by_order or count == 1):
            found[below] = ALONE if count == 1 else BY_ORDER
    return found
