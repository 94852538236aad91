"""Which passes of the two sides belong together, and where they cut a batch differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paritydbg.align.calls import Pass

CUT = "the two sides cut the batch into different micro-batches"


@dataclass(frozen=True)
class PassGroup:
    """Passes that stand for each other: one and one, one and several, or several and one.

    Attributes:
        uneven: both sides have as many passes, but with other sizes: nothing in them compares.
    """

    reference: tuple[Pass, ...]
    port: tuple[Pass, ...]
    uneven: bool = False

    @property
    def cut(self) -> bool:
        """Whether one side runs in one pass what the other runs in several."""
        return len(self.reference) != len(self.port)


@dataclass(frozen=True)
class MatchedPasses:
    """All passes of one step."""

    groups: tuple[PassGroup, ...]
    lone_reference: tuple[Pass, ...] = ()
    lone_port: tuple[Pass, ...] = ()


def match_passes(
    reference: Sequence[Pass], port: Sequence[Pass], partners: Mapping[str, str]
) -> MatchedPasses:
    """The groups of one step's passes.

    Args:
        partners: the reference's layer name -> the port's.
    """
    by_root: dict[str | None, list[Pass]] = {}
    for one in port:
        by_root.setdefault(one.root, []).append(one)
    mine: dict[str | None, list[Pass]] = {}
    for one in reference:
        mine.setdefault(one.root, []).append(one)
    groups: list[PassGroup] = []
    lone: list[Pass] = []
    for root, passes in mine.items():
        partner = partners.get(root, root) if root is not None else None
        if partner not in by_root and len(mine) == len(by_root) == 1:
            (partner,) = by_root
        others = by_root.pop(partner, [])
        found, left, right = _of_one_net(passes, others)
        groups += found
        lone += left
        by_root[partner] = list(right)
    rest = [one for passes in by_root.values() for one in passes]
    return MatchedPasses(tuple(groups), tuple(lone), tuple(rest))


def _of_one_net(
    reference: Sequence[Pass], port: Sequence[Pass]
) -> tuple[list[PassGroup], Sequence[Pass], Sequence[Pass]]:
    sizes = [one.batch_size for one in reference], [one.batch_size for one in port]
    known = all(size is not None for side in sizes for size in side)
    if len(reference) == len(port):
        total = [sum(size or 0 for size in side) for side in sizes]
        uneven = known and len(port) > 1 and sizes[0] != sizes[1] and total[0] == total[1]
        return (
            [PassGroup((a,), (b,), uneven) for a, b in zip(reference, port, strict=True)],
            (),
            (),
        )
    groups = _cut(reference, port) if known else None
    if groups is not None:
        return groups, (), ()
    common = min(len(reference), len(port))
    pairs = zip(reference[:common], port[:common], strict=True)
    return [PassGroup((a,), (b,)) for a, b in pairs], reference[common:], port[common:]


def _cut(reference: Sequence[Pass], port: Sequence[Pass]) -> list[PassGroup] | None:
    """Groups in which one pass of a side holds as many samples as several of the other, or None."""
    groups: list[PassGroup] = []
    i = j = 0
    while i < len(reference) and j < len(port):
        mine, yours = [reference[i]], [port[j]]
        i, j = i + 1, j + 1
        while _samples(mine) != _samples(yours):
            if _samples(mine) < _samples(yours) and i < len(reference):
                mine.append(reference[i])
                i += 1
            elif _samples(yours) < _samples(mine) and j < len(port):
                yours.append(port[j])
                j += 1
            else:
                return None
        if len(mine) > 1 and len(yours) > 1:
            return None
        groups.append(PassGroup(tuple(mine), tuple(yours)))
    return groups if i == len(reference) and j == len(port) else None


def _samples(passes: Sequence[Pass]) -> int:
    return sum(one.batch_size or 0 for one in passes)
