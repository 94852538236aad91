"""The network as a tree along the order of execution, each layer with the heaviest verdict in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.report import Report
from paritydbg.report.html.elements import Markup, tag
from paritydbg.report.html.marks import MARKS, badge
from paritydbg.report.lines import times_over

# Trees of more layers start closed but for the path to what is wrong.
_OPEN_UP_TO = 60


@dataclass
class Node:
    """One layer while the tree is built.

    Attributes:
        name: dotted name, ``""`` for the net.
        own: the heaviest comparison of the layer itself, None where nothing of it was compared.
        children: by their last name, in order of execution.
    """

    name: str
    api: str = ""
    port: str = ""
    own: Comparison | None = None
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def heaviest(self) -> Verdict:
        """The heaviest verdict of the layer and all inside it."""
        own = self.own.verdict if self.own is not None else Verdict.UNTESTED
        return max([own, *(c.heaviest for c in self.children.values())], key=_weight)

    @property
    def size(self) -> int:
        """Layers in the tree, this one counted."""
        return 1 + sum(child.size for child in self.children.values())


def tree_of(report: Report) -> Node:
    """The reference's layers as a tree; children stand in the order in which they first ran."""
    known = {layer.name: layer for layer in report.reference.layers}
    partner = {pair.reference: pair.port for pair in report.alignment.layers}
    owner = {name: layer.name for layer in report.reference.layers for name in layer.parameters}
    root = Node("")
    heaviest: dict[str, Comparison] = {}
    ran: dict[str, int] = {}
    for one in report.comparisons:
        name = one.pair.first.key.name
        layer = name if name in known else owner.get(name, name.rpartition(".")[0])
        if layer not in known:
            continue
        # Parameters are recorded before anything runs.
        if name in known:
            ran.setdefault(name, len(ran))
        before = heaviest.get(layer)
        if before is None or _rank(one) > _rank(before):
            heaviest[layer] = one
    # A layer that ran nothing itself (a list of layers) stands where its first child ran.
    place: dict[str, int] = {}
    for name, number in ran.items():
        for parent in _path(name):
            place[parent] = min(place.get(parent, number), number)
    for name in sorted(known, key=lambda name: place.get(name, len(known))):
        node = root
        for part, path in zip(name.split(".") if name else [], _path(name), strict=True):
            node = node.children.setdefault(part, Node(path))
        node.api, node.port = known[name].api, partner.get(name, "")
        node.own = heaviest.get(name)
    return root


def tree(report: Report) -> Markup:
    """The tree, what is wrong opened."""
    root = tree_of(report)
    small = root.size <= _OPEN_UP_TO
    return tag("div", tag("ul", _item(root, small), class_="tree"), class_="scroll")


def _item(node: Node, small: bool) -> Markup:
    heaviest = node.heaviest
    label = _label(node, heaviest)
    if not node.children:
        return tag("li", tag("span", label, class_="leaf"))
    open_ = small or MARKS[heaviest].kind == "diverged" or not node.name
    inside = tag("ul", *(_item(child, small) for child in node.children.values()))
    return tag("li", tag("details", tag("summary", label), inside, open=open_))


def _label(node: Node, heaviest: Verdict) -> Markup:
    name = node.name.rpartition(".")[2] or "(net)"
    kind = node.api.rpartition(".")[2]
    told = [badge(heaviest), " ", tag("b", name), " ", tag("span", kind, class_="kind")]
    if node.port and node.port != node.name:
        told += [" ", tag("span", f"↔ {node.port}", class_="kind")]
    own = node.own
    if own is not None and MARKS[own.verdict].weight > 1 and own.metrics is not None:
        key = own.pair.first.key
        far = f"{key.role.value} {own.metrics.relative_l2:.1e}"
        over = f", {times_over(own.score)}" if own.score > 1 else ""
        told += [" ", tag("span", far + over, class_=f"far {MARKS[own.verdict].kind}")]
    return Markup("".join(str(one) if isinstance(one, Markup) else one for one in told))


def _path(name: str) -> list[str]:
    parts = name.split(".") if name else []
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _weight(verdict: Verdict) -> int:
    return MARKS[verdict].weight


def _rank(comparison: Comparison) -> tuple[int, float]:
    return _weight(comparison.verdict), comparison.score
