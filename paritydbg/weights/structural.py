"""Layers joined by what they own and by their order of registration, where names tell nothing.

Never a guess: a group of layers that look alike is joined only if both sides have equally many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

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
    if by_order:
        descend(matching, _only_of_its_kind)


def _siblings_by_weights(matching: Matching, reference: str, port: str, by_order: bool) -> None:
    left, right = matching.free_children(reference, port)
    left, right = _open_up(matching, left, right)
    for one, other, confidence in _alike_pairs(left, right, lambda node: node.below, by_order):
        matching.join(one.name, other.name, "sequence", confidence)


def _open_up(
    matching: Matching, left: list[Node], right: list[Node]
) -> tuple[list[Node], list[Node]]:
    """The siblings, with containers that have no equal on the other side replaced by their insides."""
    while True:
        wholes = _wholes(left, right) | _wholes(right, left)
        # The largest first: a wrapper comes off before the containers inside it are looked into.
        largest = max((len(n.below) for n in (*left, *right) if _opens(n, wholes)), default=0)
        opened_left = _opened(left, matching.reference, wholes, largest, set(matching.to_port))
        opened_right = _opened(right, matching.port, wholes, largest, set(matching.to_reference))
        # Opening pays only while the other side has something left to meet what comes out.
        if not opened_left or not opened_right or (opened_left, opened_right) == (left, right):
            return left, right
        left, right = opened_left, opened_right


def _opened(
    nodes: Sequence[Node],
    tree: Tree,
    wholes: set[str],
    largest: int,
    taken: set[str],
) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        if _opens(node, wholes) and len(node.below) == largest:
            found += [tree.nodes[child] for child in node.children if child not in taken]
        else:
            found.append(node)
    return [node for node in found if node.below]


def _wholes(nodes: Sequence[Node], others: Sequence[Node]) -> set[str]:
    """Names of those that have an equal on the other side; a container and a leaf rarely are."""
    return {
        node.name
        for node in nodes
        for other in others
        if node.below == other.below
        and (node.leaf == other.leaf or (node.kind and node.kind == other.kind))
    }


def _opens(node: Node, wholes: set[str]) -> bool:
    """Whether a container may be replaced by its insides."""
    return not (node.name in wholes or node.own or node.leaf)


def _only_of_its_kind(matching: Matching, reference: str, port: str) -> None:
    """Join leaves without parameters that are the only free ones of their kind in both containers."""
    left, right = (
        [node for node in nodes if node.leaf and node.kind and not node.below]
        for nodes in matching.free_children(reference, port)
    )
    counts = Counter(node.kind for node in left), Counter(node.kind for node in right)
    by_kind = {node.kind: node for node in right}
    for node in left:
        if counts[0][node.kind] == counts[1][node.kind] == 1:
            matching.join(node.name, by_kind[node.kind].name, "derived", BY_ORDER)


def _owners_between_anchors(matching: Matching, by_order: bool) -> None:
    """Join free owners that lie between the same two pairs, where looks and numbers leave no choice.

    Without the order of registration there is nothing between pairs: looks must tell on their own.
    """
    anchors = in_order(matching) if by_order else []
    left = _gaps(matching.reference, [name for name, _ in anchors], set(matching.to_port))
    right = _gaps(matching.port, [name for _, name in anchors], set(matching.to_reference))
    for mine, yours in zip(left, right, strict=True):
        for one, other, sure in _alike_pairs(mine, yours, lambda node: (node.own,), by_order):
            matching.join(one.name, other.name, "sequence", sure - 0.1)


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


def _alike_pairs(
    left: Sequence[Node],
    right: Sequence[Node],
    look: Callable[[Node], tuple[Signature, ...]],
    by_order: bool,
) -> list[tuple[Node, Node, float]]:
    """Layers whose looks both sides have equally often, in order, with the confidence of each pair.

    Of two layers that own the same the kind tells more, where it is known: a dense layer is no
    embedding of the same shape.
    """
    found: list[tuple[Node, Node, float]] = []
    for key in (lambda node: (node.kind, look(node)), lambda node: ("", look(node))):
        used = {node.name for pair in found for node in pair[:2]}
        mine = _by_look([node for node in left if node.name not in used], key)
        yours = _by_look([node for node in right if node.name not in used], key)
        for looks, nodes in mine.items():
            others = yours.get(looks, [])
            if not any(looks[1]) or len(nodes) != len(others) or not (by_order or len(nodes) == 1):
                continue
            sure = ALONE if len(nodes) == 1 else BY_ORDER
            found += [
                (one, other, sure)
                for one, other in zip(nodes, others, strict=True)
                if not (one.kind and other.kind and one.kind != other.kind)
            ]
    return found


def _by_look(
    nodes: Sequence[Node], key: Callable[[Node], tuple[str, tuple[Signature, ...]]]
) -> dict[tuple[str, tuple[Signature, ...]], list[Node]]:
    found: dict[tuple[str, tuple[Signature, ...]], list[Node]] = {}
    for node in nodes:
        found.setdefault(key(node), []).append(node)
    return found
