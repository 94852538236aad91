"""Layers of two trees joined step by step: a working table, and the searches that fill it by name.

What values or the order of execution tell is found elsewhere and put in through `Matching.join`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from paritydbg.model.pair import How, LayerPair
from paritydbg.weights.rules import Rename, canonical_component, rename_name
from paritydbg.weights.sequence import longest_chain, match_sequences
from paritydbg.weights.tree import Node, Tree


class Matching:
    """Which layer of the port stands for which of the reference, as far as known.

    Attributes:
        prove: gives the layers that equal values of parameters join; asked only where names may
            mislead, since it reads all values.
    """

    def __init__(self, reference: Tree, port: Tree) -> None:
        self.reference = reference
        self.port = port
        self.to_port: dict[str, LayerPair] = {}
        self.to_reference: dict[str, LayerPair] = {}
        self.prove: Callable[[], Mapping[str, str]] = dict

    def join(self, reference: str, port: str, how: How, confidence: float) -> bool:
        """Note a pair unless one of the two has a partner already; whether it was noted."""
        if reference in self.to_port or port in self.to_reference:
            return False
        pair = LayerPair(reference, port, how, confidence)
        self.to_port[reference] = pair
        self.to_reference[port] = pair
        return True

    def partner(self, reference: str) -> str | None:
        """The port's name for a layer of the reference, None where it has none."""
        pair = self.to_port.get(reference)
        return pair.port if pair is not None else None

    def free_children(self, reference: str, port: str) -> tuple[list[Node], list[Node]]:
        """The layers inside a pair that have no partner yet; wrappers are seen through."""
        left = _inside(self.reference, reference, self.to_port)
        right = _inside(self.port, port, self.to_reference)
        return left, right


def pair_by_name(
    matching: Matching, rename: Sequence[Rename] = (), user: Sequence[tuple[str, str]] = ()
) -> None:
    """Join layers that the user's map, their exact names or the rename rules join."""
    for reference, port in user:
        matching.join(reference, port, "map", 1.0)
    _renamed(matching, rename)
    if "" in matching.reference.nodes and "" in matching.port.nodes:
        matching.join("", "", "name", 1.0)
    descend(matching, _siblings_by_name)


def descend(matching: Matching, search: Callable[[Matching, str, str], None]) -> None:
    """Run a search inside every pair, from the nets down, pairs it finds included."""
    visited: set[tuple[str, str]] = set()
    while True:
        waiting = [
            (pair.reference, pair.port)
            for pair in matching.to_port.values()
            if (pair.reference, pair.port) not in visited
        ]
        if not waiting:
            return
        for reference, port in waiting:
            visited.add((reference, port))
            if reference in matching.reference.nodes and port in matching.port.nodes:
                search(matching, reference, port)


def _renamed(matching: Matching, rename: Sequence[Rename]) -> None:
    if not rename:
        return
    for name in matching.reference.nodes:
        new = rename_name(name, rename)
        if new != name and new in matching.port.nodes:
            matching.join(name, new, "rule", 0.98)


def _siblings_by_name(matching: Matching, reference: str, port: str) -> None:
    """Join children of a pair by their last names: exact, then in canonical words, then by number."""
    left, right = matching.free_children(reference, port)
    numbered = _numbered(left), _numbered(right)
    shifted = _shifted(matching, *numbered)
    if shifted or not _numbers_agree(*numbered):
        for node, other in shifted:
            matching.join(node.name, other.name, "value", 0.95)
        if not shifted:
            _by_sequence(matching, numbered[0], numbered[1])
        drop = {node.name for group in numbered for node in group}
        left = [node for node in left if node.name not in drop]
        right = [node for node in right if node.name not in drop]
    full = {node.name: node for node in right}
    for node in left:
        if node.name in full and node.last == full[node.name].last:
            matching.join(node.name, node.name, "name", 1.0)
    parent = matching.to_port[reference]
    for key, how, confidence in (
        (_last, parent.how if parent.how != "map" else "rule", 0.97),
        (_canonical_last, "rule", 0.95),
        (_number, "rule", 0.9),
    ):
        _by_key(matching, left, right, key, how, confidence)


def _by_key(
    matching: Matching,
    left: Sequence[Node],
    right: Sequence[Node],
    key: Callable[[Node], str],
    how: How,
    confidence: float,
) -> None:
    """Join free nodes that alone on their side have the same key (``""`` is none)."""
    left = [node for node in left if node.name not in matching.to_port]
    right = [node for node in right if node.name not in matching.to_reference]
    counts = Counter(key(node) for node in left), Counter(key(node) for node in right)
    by_key = {key(node): node for node in right}
    for node in left:
        word = key(node)
        if word and counts[0][word] == 1 and counts[1][word] == 1:
            other = by_key[word]
            if key is not _number or same_weights(node, other):
                matching.join(node.name, other.name, how, confidence)


def _inside(tree: Tree, name: str, taken: dict[str, LayerPair]) -> list[Node]:
    found: list[Node] = []
    for child in tree.nodes[name].children:
        node = tree.nodes[child]
        if node.wrapper and child not in taken:
            found += _inside(tree, child, taken)
        elif child not in taken:
            found.append(node)
    return found


def _numbered(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.last.isdigit()]


def _shifted(
    matching: Matching, left: Sequence[Node], right: Sequence[Node]
) -> list[tuple[Node, Node]]:
    """Numbered siblings that values join in order under other numbers, where a side has more of them.

    A block that is missing or extra shifts the numbers behind it, and blocks look alike. Values that
    only change places are left to the numbers: there the values are what is wrong.
    """
    if not left or not right or len(left) == len(right):
        return []
    homes: dict[str, Counter[str]] = {}
    for layer, other in matching.prove().items():
        mine, yours = _around(layer, left), _around(other, right)
        if mine and yours:
            homes.setdefault(mine, Counter())[yours] += 1
    places = {node.name: place for place, node in enumerate(right)}
    found = [
        (node, right[places[next(iter(homes[node.name]))]])
        for node in left
        if len(homes.get(node.name, ())) == 1
    ]
    order = [places[other.name] for _, other in found]
    if order != sorted(set(order)) or all(node.last == other.last for node, other in found):
        return []
    return found


def _around(layer: str, siblings: Sequence[Node]) -> str:
    """The name of the sibling that a layer is or lies in, ``""`` if in none."""
    for node in siblings:
        if layer == node.name or layer.startswith(f"{node.name}."):
            return node.name
    return ""


def _numbers_agree(left: Sequence[Node], right: Sequence[Node]) -> bool:
    """Whether children called 0, 1, 2 … mean the same layers on both sides.

    An extra layer in front shifts every number, which names cannot see and types and shapes can. A
    single layer of another type at its place is a mistake in the port, not a shift.
    """
    by_number = {node.last: node for node in right}
    common = [(node, by_number[node.last]) for node in left if node.last in by_number]
    if all(alike(node, other) for node, other in common):
        return True
    chain = match_sequences(left, right, _likeness)
    return all(left[i].last == right[j].last for i, j in chain) and bool(chain)


def _by_sequence(matching: Matching, left: Sequence[Node], right: Sequence[Node]) -> None:
    for i, j in match_sequences(left, right, _likeness):
        same = left[i].name == right[j].name
        matching.join(
            left[i].name, right[j].name, "name" if same else "sequence", 0.9 if same else 0.7
        )


def _likeness(left: Node, right: Node) -> float:
    """How well two numbered siblings fit: 0 for not at all."""
    if not alike(left, right):
        return 0.0
    return 2.0 + bool(left.below) + (left.last == right.last) * 0.5


def alike(left: Node, right: Node) -> bool:
    """Whether two layers can be the same one by kind and by the shapes of what they own."""
    if left.kind and right.kind and left.kind != right.kind:
        return False
    shapes = dict(right.own)
    if any(shapes.get(name, shape) != shape for name, shape in left.own):
        return False
    if bool(left.below) != bool(right.below):
        return False
    return left.leaf == right.leaf or not (left.kind and right.kind)


def same_weights(left: Node, right: Node) -> bool:
    """Whether all parameters from the two layers down are the same by name and layout-free shape."""
    return left.below == right.below


def in_order(matching: Matching) -> list[tuple[str, str]]:
    """The longest run of paired owners of parameters that come in the same order on both sides."""
    places = {name: place for place, name in enumerate(matching.port.owners)}
    pairs = [
        (name, matching.to_port[name].port)
        for name in matching.reference.owners
        if name in matching.to_port and matching.to_port[name].port in places
    ]
    kept = longest_chain([places[port] for _, port in pairs])
    return [pairs[place] for place in kept]


def _last(node: Node) -> str:
    return node.last


def _canonical_last(node: Node) -> str:
    return canonical_component(node.last)


def _number(node: Node) -> str:
    """The number at the end of the last name: ``block0`` and ``0`` give ``0``."""
    digits = node.last[len(node.last.rstrip("0123456789")) :]
    return str(int(digits)) if digits else ""
