"""Holds an alignment against the truth: pairs found, pairs missed, pairs that are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from alignbed.ground_truth import Truth
from alignbed.record import Place
from paritydbg.dump.reader import open_dump
from paritydbg.model.event import Phase, Role
from paritydbg.model.pair import Alignment
from paritydbg.model.record import RunRecord
from paritydbg.model.source import EventSource


@dataclass(frozen=True)
class Score:
    """One kind of pairs, judged.

    Attributes:
        found, true: pairs of the truth that were made, and all of them.
        wrong: pairs made that the truth has not.
        missed_pairs, wrong_pairs: which.
    """

    found: int
    true: int
    wrong: int
    missed_pairs: tuple[str, ...] = ()
    wrong_pairs: tuple[str, ...] = ()

    def __add__(self, other: Score) -> Score:
        return Score(
            self.found + other.found,
            self.true + other.true,
            self.wrong + other.wrong,
            self.missed_pairs + other.missed_pairs,
            self.wrong_pairs + other.wrong_pairs,
        )

    @property
    def share(self) -> float:
        """The share of true pairs that were found, 1 where there are none."""
        return self.found / self.true if self.true else 1.0


NOTHING = Score(0, 0, 0)


@dataclass(frozen=True)
class Judgement:
    """An alignment's layers, parameters and calls (outputs of leaves), judged."""

    layers: Score = NOTHING
    parameters: Score = NOTHING
    calls: Score = NOTHING

    def __add__(self, other: Judgement) -> Judgement:
        return Judgement(
            self.layers + other.layers,
            self.parameters + other.parameters,
            self.calls + other.calls,
        )

    @property
    def perfect(self) -> bool:
        """Whether all was found and nothing wrong."""
        kinds = (self.layers, self.parameters, self.calls)
        return all(kind.found == kind.true and not kind.wrong for kind in kinds)


def align_and_judge(reference: Any, port: Any, truth: Truth) -> Judgement:
    """Align two dump files with the product and judge what it made of them."""
    from paritydbg.align.dumps import align_dumps

    with open_dump(reference) as one, open_dump(port) as other:
        return judge(align_dumps(one, other), truth, one, other)


def judge(
    alignment: Alignment, truth: Truth, reference: EventSource, port: EventSource
) -> Judgement:
    """The alignment of two dumps held against the truth."""
    layers = {
        (pair.reference, pair.port)
        for pair in alignment.layers
        if pair.reference not in truth.free[0] and pair.port not in truth.free[1]
    }
    parameters = {(pair.reference, pair.port) for pair in alignment.parameters}
    # A layer for every call: the pair of one of them is no more wrong than that of another.
    shared = _shared(truth, layers)
    return Judgement(
        _score(truth.layers, layers - shared),
        _score(_spread(truth.parameters), _spread(parameters)),
        _calls(alignment, truth, reference, port),
    )


def _shared(truth: Truth, layers: set[tuple[str, str]]) -> set[tuple[str, str]]:
    by_calls = {(one[0], other[0]) for a, b in truth.calls for one in a for other in b}
    return (layers & by_calls) - truth.layers


def _spread(pairs: Iterable[Any]) -> set[Any]:
    """Pairs of groups as they are; order within a group counts."""
    return {(tuple(a), tuple(b)) for a, b in pairs}


def _calls(alignment: Alignment, truth: Truth, reference: EventSource, port: EventSource) -> Score:
    leaves = _leaves(reference.run), _leaves(port.run)
    seen = _lengths(reference), _lengths(port)

    def known(side: int, places: tuple[Place, ...]) -> bool:
        return all(
            name in leaves[side]
            and name not in truth.free_calls[side]
            and (name, call) in seen[side]
            for name, call in places
        )

    def counts(a: tuple[Place, ...], b: tuple[Place, ...]) -> bool:
        if not known(0, a) or not known(1, b):
            return False
        # What no batch goes through is not cut with it.
        lengths = sum(seen[0][place] for place in a), sum(seen[1][place] for place in b)
        return len(a) == len(b) or lengths[0] == lengths[1]

    true = {(a, b) for a, b in truth.calls if counts(a, b)}
    made = set()
    for pair in alignment.events:
        if pair.first.key.role is Role.OUTPUT and pair.first.key.phase is Phase.FORWARD:
            a = tuple((event.key.name, event.key.call) for event in pair.reference)
            b = tuple((event.key.name, event.key.call) for event in pair.port)
            if counts(a, b):
                made.add((a, b))
    return _score(true, made)


def _leaves(run: RunRecord) -> set[str]:
    return {layer.name for layer in run.layers if layer.leaf}


def _lengths(source: EventSource) -> dict[tuple[str, int], int]:
    """The length of axis 0 of what each call gave, for all calls that were captured."""
    return {
        (event.key.name, event.key.call): event.shape[0] if event.shape else 0
        for event in source.events
        if event.key.role is Role.OUTPUT and event.key.phase is Phase.FORWARD
    }


def _score(true: Iterable[Any], made: Iterable[Any]) -> Score:
    wanted, got = set(true), set(made)
    return Score(
        len(wanted & got),
        len(wanted),
        len(got - wanted),
        tuple(sorted(map(_text, wanted - got))),
        tuple(sorted(map(_text, got - wanted))),
    )


def _text(pair: tuple[Any, Any]) -> str:
    return " = ".join(_side(side) for side in pair)


def _side(side: Any) -> str:
    if isinstance(side, str):
        return side or "(net)"
    return "+".join(one if isinstance(one, str) else f"{one[0]}#{one[1]}" for one in side)
