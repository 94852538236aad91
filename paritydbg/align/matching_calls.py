"""Calls of the two sides joined within one pass: by their layers' names, then by order of execution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paritydbg.align.calls import Call, Pass
from paritydbg.align.profiles import Profile, fallback
from paritydbg.model.event import Role
from paritydbg.model.pair import How, LayerPair
from paritydbg.weights.rules import canonical_component
from paritydbg.weights.sequence import longest_chain, match_scores
from paritydbg.weights.tree import Signature

# A call within a pass: layer, and number of its call counted within the pass.
Spot = tuple[str, int]


@dataclass(frozen=True)
class SpotPair:
    """A call of each side that stand for each other, by their places within a pass."""

    reference: Spot
    port: Spot
    how: How
    confidence: float


@dataclass(frozen=True)
class Known:
    """What is known before the order of execution is looked at.

    Attributes:
        pairs: the layer pairs so far, by the names that events bear.
        reference, port: profiles by name.
    """

    pairs: tuple[LayerPair, ...]
    reference: Mapping[str, Profile]
    port: Mapping[str, Profile]


def spots(one: Pass) -> dict[Spot, Call]:
    """The calls of a pass by place, in order of execution."""
    counts: Counter[str] = Counter()
    found: dict[Spot, Call] = {}
    for call in sorted(one.calls, key=lambda call: (call.order, call.number)):
        found[call.layer, counts[call.layer]] = call
        counts[call.layer] += 1
    return found


def match_calls(reference: Pass, port: Pass, known: Known) -> tuple[SpotPair, ...]:
    """The places of two passes that stand for each other.

    Layers that are partners already pair their calls one to one; a layer that runs several times
    where the other side has several layers is paired in order of execution. What is left between
    such anchors is aligned as a sequence.
    """
    mine, yours = spots(reference), spots(port)
    anchors = _by_layers(mine, yours, known.pairs)
    found = list(anchors)
    found += _between(mine, yours, anchors, known)
    return tuple(found)


def _by_layers(
    mine: Mapping[Spot, Call], yours: Mapping[Spot, Call], pairs: Sequence[LayerPair]
) -> list[SpotPair]:
    """Calls of partner layers; a group of partners must run equally often on both sides."""
    found: list[SpotPair] = []
    for group in _groups(pairs):
        left = [spot for spot in mine if spot[0] in {pair.reference for pair in group}]
        right = [spot for spot in yours if spot[0] in {pair.port for pair in group}]
        if len(left) != len(right):
            continue
        weakest = min(group, key=lambda pair: pair.confidence)
        found += [
            SpotPair(a, b, weakest.how, weakest.confidence)
            for a, b in zip(left, right, strict=True)
        ]
    return found


def _groups(pairs: Sequence[LayerPair]) -> list[list[LayerPair]]:
    """The pairs in groups that share layers (a layer under two names on one side)."""
    home: dict[tuple[int, str], list[LayerPair]] = {}
    for pair in pairs:
        keys = (0, pair.reference), (1, pair.port)
        merged = [pair]
        for key in keys:
            if key in home and home[key] is not merged:
                merged = home[key] if len(merged) == 1 else [*home[key], *merged]
        if pair not in merged:
            merged.append(pair)
        for one in merged:
            home[0, one.reference] = home[1, one.port] = merged
    seen: dict[int, list[LayerPair]] = {id(group): group for group in home.values()}
    return list(seen.values())


def _between(
    mine: Mapping[Spot, Call],
    yours: Mapping[Spot, Call],
    anchors: Sequence[SpotPair],
    known: Known,
) -> list[SpotPair]:
    taken = {pair.reference for pair in anchors}, {pair.port for pair in anchors}
    left = [s for s in mine if s in taken[0] or fallback(known.reference, s[0]).unit]
    right = [s for s in yours if s in taken[1] or fallback(known.port, s[0]).unit]
    place = {spot: number for number, spot in enumerate(right)}
    partner = {pair.reference: pair.port for pair in anchors}
    fixed = [(i, place[partner[s]]) for i, s in enumerate(left) if partner.get(s) in place]
    chain = [fixed[i] for i in longest_chain([column for _, column in fixed])]
    bounds = [(-1, -1), *chain, (len(left), len(right))]
    found: list[SpotPair] = []
    for (i, j), (next_i, next_j) in zip(bounds, bounds[1:], strict=False):
        rows = [s for s in left[i + 1 : next_i] if s not in taken[0]]
        columns = [s for s in right[j + 1 : next_j] if s not in taken[1]]
        if rows and columns:
            found += _in_gap(rows, columns, mine, yours, known)
    return found


def _in_gap(
    rows: Sequence[Spot],
    columns: Sequence[Spot],
    mine: Mapping[Spot, Call],
    yours: Mapping[Spot, Call],
    known: Known,
) -> list[SpotPair]:
    """Calls of a gap aligned in order; owners of parameters only where their numbers agree."""
    left = [_looks(mine[spot], fallback(known.reference, spot[0])) for spot in rows]
    right = [_looks(yours[spot], fallback(known.port, spot[0])) for spot in columns]
    sorts = _sorts(left, right)
    codes = _codes([*left, *right], [*sorts[0], *sorts[1]])
    table = codes[: len(left)], codes[len(left) :]
    weights = np.array([4.0, 2.0, 1.0, 0.5])
    partners = {(pair.reference, pair.port) for pair in known.pairs}
    port_layers: dict[str, list[int]] = {}
    for column, (layer, _) in enumerate(columns):
        port_layers.setdefault(layer, []).append(column)
    promised: dict[str, list[int]] = {}
    for one, other in partners:
        promised.setdefault(one, []).extend(port_layers.get(other, ()))

    def row_scores(row: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        sort, family, kind, shape, inner = table[0][row]
        others = table[1]
        same_sort = others[:, 0] == sort
        same_family = (others[:, 1] == family) & (family >= 0)
        same_kind = (others[:, 2] == kind) & (kind >= 0)
        unknown = (others[:, 2] < 0) | (kind < 0)
        same_shape = others[:, 3] == shape
        same_inner = others[:, 4] == inner
        fits = same_sort & (
            same_family | ((same_kind | unknown) & (same_shape | same_inner)) | (sort > 0)
        )
        points = np.stack([same_family, same_kind, same_shape, same_inner], axis=1) @ weights
        scores = np.where(fits, points + 0.25, 0.0)
        for column in promised.get(rows[row][0], ()):
            scores[column] += 6.0
        return scores

    pairs = match_scores(row_scores, len(rows), len(columns))
    return [
        SpotPair(rows[i], columns[j], "sequence", _confidence(left[i], right[j])) for i, j in pairs
    ]


@dataclass(frozen=True)
class _Looks:
    word: str
    own: Signature
    family: str
    kind: str
    shape: tuple[tuple[int, ...], ...]
    inner: tuple[tuple[int, ...], ...]


def _looks(call: Call, profile: Profile) -> _Looks:
    shapes = call.shapes(Role.OUTPUT) or call.shapes(Role.GRAD_OUTPUT)
    return _Looks(
        canonical_component(call.layer.rpartition(".")[2]),
        profile.own,
        profile.family,
        profile.kind,
        shapes,
        tuple(shape[1:] for shape in shapes),
    )


def _sorts(left: Sequence[_Looks], right: Sequence[_Looks]) -> tuple[list[object], list[object]]:
    """What each call must agree on with its partner; ``()`` for layers without parameters.

    Owners of the same where both sides have equally many; else those of the same last name; else
    those that differ by a bias (folded norms, a bias left out). Any other has a sort of its own.
    """
    found: tuple[list[object], list[object]] = (
        [None if look.own else () for look in left],
        [None if look.own else () for look in right],
    )
    keys: tuple[Callable[[_Looks], object], ...] = (
        lambda look: (0, look.own),
        lambda look: (1, look.own, look.word),
        lambda look: (2, look.family, tuple(part for part in look.own if part[0] != "bias")),
    )
    for key in keys:
        counts = [
            Counter(key(look) for look, sort in zip(looks, sorts, strict=True) if sort is None)
            for looks, sorts in zip((left, right), found, strict=True)
        ]
        for looks, sorts in zip((left, right), found, strict=True):
            for place, look in enumerate(looks):
                if sorts[place] is None and counts[0][key(look)] == counts[1][key(look)]:
                    sorts[place] = key(look)
    for side, sorts in enumerate(found):
        sorts[:] = [(3, side, n) if sort is None else sort for n, sort in enumerate(sorts)]
    return found


def _codes(
    looks: Sequence[_Looks], sorts: Sequence[object]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Numbers for sort, family, kind, shape and shape without axis 0; -1 for an unknown kind."""
    tables: list[dict[object, int]] = [{(): 0}, {"": -1}, {"": -1}, {}, {}]
    rows = []
    for look, sort in zip(looks, sorts, strict=True):
        fields: tuple[object, ...] = (sort, look.family, look.kind, look.shape, look.inner)
        rows.append([t.setdefault(f, len(t)) for t, f in zip(tables, fields, strict=True)])
    return np.array(rows, dtype=np.int64)


def _confidence(left: _Looks, right: _Looks) -> float:
    """How sure a pair is that only the order told."""
    if left.family != right.family:
        return 0.5
    return 0.8 if left.shape == right.shape else 0.65
