"""Two sequences matched in order (Needleman and Wunsch 1970), and longest ordered runs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Floats = NDArray[np.float64]


def match_sequences(
    left: Sequence[Item], right: Sequence[Item], likeness: Callable[[Item, Item], float]
) -> list[tuple[int, int]]:
    """Index pairs, in order, whose likeness adds up to the most; likeness 0 never makes a pair."""
    if not left or not right:
        return []
    scores = np.array([[likeness(a, b) for b in right] for a in left], dtype=np.float64)
    return match_scores(lambda row: scores[row], len(left), len(right))


def match_scores(
    row_scores: Callable[[int], Floats], rows: int, columns: int
) -> list[tuple[int, int]]:
    """Index pairs, in order, of the best total; gaps are free and only scores above 0 make pairs.

    Works row by row: with free gaps a row's best is a running maximum, so that numpy does the inner
    loop. Among equals the earlier pairs are kept. Memory is one byte per cell.

    Args:
        row_scores: gives row i as an array of ``columns`` scores.
    """
    best = np.zeros(columns + 1)
    steps = np.zeros((rows, columns + 1), dtype=np.int8)  # 0 left, 1 up, 2 pair
    for row in range(rows):
        scores = row_scores(row)
        paired = np.where(scores > 0, best[:-1] + scores, -1.0)
        candidate = best.copy()
        better = paired > candidate[1:]
        candidate[1:][better] = paired[better]
        following = np.maximum.accumulate(candidate)
        steps[row] = 1
        steps[row, 1:][better] = 2
        # What is reached from the left as well is taken from there: earlier pairs win.
        steps[row, 1:][following[1:] == following[:-1]] = 0
        best = following
    found: list[tuple[int, int]] = []
    row, column = rows - 1, columns
    while row >= 0 and column > 0:
        step = steps[row, column]
        if step == 2:
            found.append((row, column - 1))
            row, column = row - 1, column - 1
        elif step == 1:
            row -= 1
        else:
            column -= 1
    return found[::-1]


def longest_chain(values: Sequence[int]) -> list[int]:
    """Places of a longest strictly rising run (not necessarily adjacent) of the values."""
    ends: list[int] = []
    ends_at: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        rank = bisect_left(ends, value)
        before.append(ends_at[rank - 1] if rank else -1)
        if rank == len(ends):
            ends.append(value)
            ends_at.append(place)
        else:
            ends[rank] = value
            ends_at[rank] = place
    chain: list[int] = []
    place = ends_at[-1] if ends_at else -1
    while place >= 0:
        chain.append(place)
        place = before[place]
    return chain[::-1]
