"""Layers joined by what they own and by their order of registration, where names tell nothing.

Never a guess: a group of layers that look alike is joined only if both sides have equally many.
"""

from __future__ import annotations

from collections.abc import Sequence

from paritydbg.weights.matching import Matching, descend, in_order
from paritydbg.weights.tree import Node, Signature, Tree

# Confidence of a layer that is the only one of its looks, and of one told apart by order alone.
ALONE = 0.8
BY_ORDER = 0.6


def pair_by_structure(matching: Matching) -> None:
    """Join free layers inside pairs by all that lies below them, then owners between anchors."""
    descend(matching, _siblings_by_weights)
    _owners_between_anchors(matching)
    _parents(matching)
    descend(matching, _siblings_by_weights)


def _siblings_by_weights(matching: Matching, reference: str, port: str) -> None:
    left, right = matching.free_children(reference, port)
    left, right = _open_up(matching, left, right)
    keys = _shared_keys([node.below for node in left], [node.below for node in right])
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


def _owners_between_anchors(matching: Matching) -> None:
    """Join free owners that lie between the same two pairs, where looks and numbers leave no choice."""
    anchors = in_order(matching)
    left = _gaps(matching.reference, [name for name, _ in anchors], set(matching.to_port))
    right = _gaps(matching.port, [name for _, name in anchors], set(matching.to_reference))
    for mine, yours in zip(left, right, strict=True):
        keys = _shared_keys([(node.own,) for node in mine], [(node.own,) for node in yours])
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
    """Join free containers whose joined children all lie in one container of the other side."""
    for name in sorted(matching.reference.nodes, key=lambda name: -name.count(".")):
        if name in matching.to_port or not name:
            continue
        homes = {
            matching.port.nodes[partner].parent
            for child in matching.reference.nodes[name].children
            if (partner := matching.partner(child)) is not None and partner in matching.port.nodes
        }
        if len(homes) == 1:
            (home,) = homes
            if home:
                matching.join(name, home, "derived", ALONE)


def _shared_keys(
    left: Sequence[tuple[Signature, ...]], right: Sequence[tuple[Signature, ...]]
) -> dict[tuple[Signature, ...], float]:
    """The looks that both sides have equally often, with the confidence of pairs made by them."""
    found: dict[tuple[Signature, ...], float] = {}
    for below in left:
        count = left.count(below)
        if any(below) and count == right.count(below):
            found[below] = ALONE if count == 1 else BY_ORDER
    return found
