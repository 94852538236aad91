"""Which parameters of the port stand for which of the reference; how values are moved is elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from numpy.typing import NDArray

from paritydbg.errors import UsageError
from paritydbg.model.pair import How, LayerPair, ParameterPair
from paritydbg.model.record import LayerRecord, ParameterRecord
from paritydbg.model.transform import IDENTITY, Transform
from paritydbg.weights.fingerprints import pair_by_value
from paritydbg.weights.fused import pair_fused
from paritydbg.weights.matching import Matching, pair_by_name
from paritydbg.weights.rules import DROPPED, Rename, canonical, canonical_parameter, rename_name
from paritydbg.weights.shapes import plain, transform_between
from paritydbg.weights.structural import pair_by_structure
from paritydbg.weights.tree import Tree, build_tree


@dataclass(frozen=True)
class Side:
    """One side's layers and parameters, as far as known.

    Attributes:
        layers: may be empty (a plain weights file).
        parameters: in order of registration.
        values: by name; may lack any of them, then values prove nothing for it.
    """

    layers: tuple[LayerRecord, ...]
    parameters: tuple[ParameterRecord, ...]
    values: Mapping[str, NDArray[Any]]

    def value(self, parameter: ParameterRecord) -> NDArray[Any] | None:
        """The values of a parameter, those of the tensor that it is tied to if need be."""
        found = self.values.get(parameter.name)
        return found if found is not None else self.values.get(parameter.tied_to)


@dataclass(frozen=True)
class Pairing:
    """Layers and parameters that stand for each other, before any run is looked at."""

    layers: tuple[LayerPair, ...]
    parameters: tuple[ParameterPair, ...]


def pair_parameters(
    reference: Side,
    port: Side,
    *,
    rename: Sequence[Rename] = (),
    user_pairs: Sequence[tuple[str, str]] = (),
) -> tuple[ParameterPair, ...]:
    """The parameters (and buffers) that stand for each other, in the reference's order.

    Tried in this order: the user's pairs, exact names, rename rules, equal values, then what layers
    own and the order between layers that are paired already. What stays ambiguous stays unpaired.

    Args:
        rename: rules from the reference's names to the port's, see `rules.rename_name`.
        user_pairs: (reference's name, port's name) of parameters.

    Raises:
        UsageError: a user's pair with a name that its side has not.
    """
    return pair_sides(reference, port, rename=rename, user_pairs=user_pairs).parameters


def pair_sides(
    reference: Side,
    port: Side,
    *,
    rename: Sequence[Rename] = (),
    user_pairs: Sequence[tuple[str, str]] = (),
    user_layers: Sequence[tuple[str, str]] = (),
    executed: Sequence[LayerPair] = (),
    by_order: bool = True,
) -> Pairing:
    """Layers and parameters that stand for each other; see `pair_parameters`.

    Args:
        user_layers: (reference's name, port's name) of layers.
        executed: pairs that the order of execution told; they come after names and values.
        by_order: whether layers that look alike may be told apart by their order of registration.
    """
    matching = Matching(
        build_tree(reference.layers, reference.parameters),
        build_tree(port.layers, port.parameters),
    )
    work = _Parameters(reference, port, matching, tuple(rename))
    matching.prove = work.proofs
    work.by_user(user_pairs)
    for name, other in user_layers:
        _check_known(name, matching.reference.nodes, "reference", "layer")
        _check_known(other, matching.port.nodes, "port", "layer")
    pair_by_name(matching, rename, user_layers)
    work.by_full_name()
    work.in_paired_layers()
    work.by_canonical_name()
    work.by_value()
    work.join_owners()
    for found in executed:
        matching.join(found.reference, found.port, found.how, found.confidence)
    pair_by_name(matching)
    pair_by_structure(matching, by_order)
    work.in_paired_layers()
    work.fused()
    known = {layer.name for layer in reference.layers}, {layer.name for layer in port.layers}
    layers = tuple(
        pair
        for name in matching.reference.nodes
        if (pair := matching.to_port.get(name)) is not None
        and pair.reference in known[0]
        and pair.port in known[1]
    )
    return Pairing(layers, work.in_order())


class _Parameters:
    """The parameters still to be paired, and the pairs so far."""

    def __init__(
        self, reference: Side, port: Side, matching: Matching, rename: tuple[Rename, ...]
    ) -> None:
        self.sides = reference, port
        self.matching = matching
        self.rename = rename
        self.mine = {p.name: p for p in reference.parameters}
        self.yours = {p.name: p for p in port.parameters}
        # A counter that both sides keep is a buffer like any other.
        dropped = DROPPED - {_last(name) for name in self.yours}
        self.free_mine = {name: p for name, p in self.mine.items() if _last(name) not in dropped}
        self.free_yours = dict(self.yours)
        self.pairs: list[ParameterPair] = []

    def by_user(self, user_pairs: Sequence[tuple[str, str]]) -> None:
        for name, other in user_pairs:
            _check_known(name, self.mine, "reference", "parameter")
            _check_known(other, self.yours, "port", "parameter")
            if name in self.free_mine and other in self.free_yours:
                self._pair(name, other, "map", 1.0)

    def by_full_name(self) -> None:
        """Equal names and renamed names, where the layers around them are not paired otherwise."""
        for name in list(self.free_mine):
            renamed = rename_name(name, self.rename)
            if renamed != name and renamed in self.free_yours:
                self._pair(name, renamed, "rule", 0.98)
            elif name in self.free_yours and self._layers_allow(name, name):
                self._pair(name, name, "name", 1.0)

    def in_paired_layers(self) -> None:
        for pair in list(self.matching.to_port.values()):
            self._in_layers(pair)

    def by_canonical_name(self) -> None:
        """Names that are equal without wrappers and in canonical words, if no other name is."""
        renamed = {name: canonical(rename_name(name, self.rename)) for name in self.free_mine}
        theirs = {name: canonical(name) for name in self.free_yours}
        counts = Counter(renamed.values()), Counter(theirs.values())
        by_word = {word: name for name, word in theirs.items()}
        for name, word in renamed.items():
            other = by_word.get(word)
            if other is None or not counts[0][word] == counts[1][word] == 1:
                continue
            if self._layers_allow(name, other) and self._fits(name, other):
                self._pair(name, other, "rule", 0.95)

    def by_value(self) -> None:
        reference, port = self.sides
        mine = {
            n: v for n, p in self.free_mine.items() if (v := reference.values.get(n)) is not None
        }
        yours = {n: v for n, p in self.free_yours.items() if (v := port.values.get(n)) is not None}
        for pair in pair_by_value(mine, yours):
            self._add(pair)

    def join_owners(self) -> None:
        """Join the owners of parameters that are paired one to one, where they agree on a partner."""
        votes: dict[str, Counter[str]] = {}
        for pair in self.pairs:
            if len(pair.reference) == len(pair.port) == 1:
                owner = self.mine[pair.reference[0]].layer
                votes.setdefault(owner, Counter())[self.yours[pair.port[0]].layer] += 1
        for owner, found in votes.items():
            if len(found) == 1:
                (partner,) = found
                self.matching.join(owner, partner, "value", 0.95)

    def proofs(self) -> Mapping[str, str]:
        """Owners on either side that equal values of parameters join, and no value contradicts."""
        reference, port = self.sides
        votes: dict[str, Counter[str]] = {}
        for pair in pair_by_value(reference.values, port.values):
            if len(pair.reference) == len(pair.port) == 1:
                names = pair.reference[0], pair.port[0]
                if names[0] in self.mine and names[1] in self.yours:
                    owner = self.mine[names[0]].layer
                    votes.setdefault(owner, Counter())[self.yours[names[1]].layer] += 1
        return {owner: next(iter(found)) for owner, found in votes.items() if len(found) == 1}

    def fused(self) -> None:
        def home(layer: str) -> str:
            partner = self.matching.partner(layer)
            return partner if partner is not None else rename_name(layer, self.rename)

        for pair in pair_fused(self.free_mine.values(), self.free_yours.values(), home):
            self._add(pair)

    def in_order(self) -> tuple[ParameterPair, ...]:
        places = {name: place for place, name in enumerate(self.mine)}
        return tuple(sorted(self.pairs, key=lambda pair: places[pair.reference[0]]))

    def _in_layers(self, pair: LayerPair) -> None:
        mine = [p.name for p in self._owned(self.matching.reference, pair.reference)]
        yours = [p.name for p in self._owned(self.matching.port, pair.port)]
        same_layer = pair.reference == pair.port
        for name in mine:
            other = f"{pair.port}.{_last(name)}" if pair.port else _last(name)
            if name in self.free_mine and other in self.free_yours and other in yours:
                how: How = "name" if name == other else pair.how
                self._pair(name, other, how, 1.0 if name == other else pair.confidence)
        how = "rule" if same_layer or pair.how == "name" else pair.how
        for word, (name, other) in self._unique(mine, yours, _canonical_last).items():
            if word and (self._fits(name, other) or pair.how in ("map", "name", "rule")):
                self._pair(name, other, how, min(0.97, pair.confidence))
        for _, (name, other) in self._unique(mine, yours, self._looks).items():
            self._pair(name, other, "sequence", min(0.7, pair.confidence))

    def _owned(self, tree: Tree, layer: str) -> Sequence[ParameterRecord]:
        """What a layer owns; of a net that only wraps another one what that one owns."""
        while not layer and not tree.owned.get(layer) and len(tree.nodes[layer].children) == 1:
            (layer,) = tree.nodes[layer].children
        return tree.owned.get(layer, ())

    def _unique(
        self, mine: Sequence[str], yours: Sequence[str], key: Any
    ) -> dict[Any, tuple[str, str]]:
        """Free names that alone on their side have the same key, by that key."""
        left = [name for name in mine if name in self.free_mine]
        right = [name for name in yours if name in self.free_yours]
        counts = Counter(map(key, left)), Counter(map(key, right))
        by_key = {key(name): name for name in right}
        return {
            key(name): (name, by_key[key(name)])
            for name in left
            if counts[0][key(name)] == 1 and counts[1][key(name)] == 1
        }

    def _looks(self, name: str) -> tuple[object, ...]:
        parameter = self.mine.get(name) or self.yours[name]
        return plain(parameter.shape), parameter.buffer

    def _layers_allow(self, name: str, other: str) -> bool:
        """Whether the owners may be partners: paired with each other, or both not paired yet."""
        owner, their_owner = self.mine[name].layer, self.yours[other].layer
        pair = self.matching.to_port.get(owner)
        theirs = self.matching.to_reference.get(their_owner)
        if pair is not None and theirs is not None:
            return pair is theirs
        one = pair or theirs
        return one is None or one.how in ("name", "rule", "map")

    def _fits(self, name: str, other: str) -> bool:
        return self._transform(name, other) is not None

    def _transform(self, name: str, other: str) -> Transform | None:
        mine, yours = self.mine[name], self.yours[other]
        reference, port = self.sides
        return transform_between(mine.shape, yours.shape, reference.value(mine), port.value(yours))

    def _pair(self, name: str, other: str, how: How, confidence: float) -> None:
        transform = self._transform(name, other)
        if transform is None:
            # Partners by name whose shapes do not fit: kept, so that it can be reported as such.
            transform, confidence = IDENTITY, min(confidence, 0.5)
        self._add(ParameterPair((name,), (other,), transform, how, confidence))

    def _add(self, pair: ParameterPair) -> None:
        if all(n in self.free_mine for n in pair.reference) and all(
            n in self.free_yours for n in pair.port
        ):
            self.pairs.append(pair)
            for name in pair.reference:
                del self.free_mine[name]
            for name in pair.port:
                del self.free_yours[name]


def _check_known(wanted: str, known: Iterable[str], side: str, what: str) -> None:
    names = list(known)
    if wanted not in names:
        closest = next(iter(get_close_matches(wanted, names, 1, 0.0)), "none")
        raise UsageError(
            f"the map names the {side}'s {what} {wanted!r}, which it has not; closest: {closest}"
        )


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _canonical_last(name: str) -> str:
    return canonical_parameter(_last(name))
