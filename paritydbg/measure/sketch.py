"""A tensor in 2 KB: exact statistics and a random-sign sketch, from which differences are estimated.

The sketch is the CountSketch of Charikar, Chen and Farach-Colton (Finding Frequent Items in Data
Streams, 2002): every element is added, with a random sign, to one of 256 buckets. Sign and bucket
depend on the element's position alone, so that the buckets of a difference are the difference of the
buckets. How a sketch is stored is the dump's matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.model.comparison import Metrics

Array = NDArray[Any]
Floats = NDArray[np.float64]

BUCKETS = 256
# The second moment that the buckets give has a relative variance of at most 2 / BUCKETS (Alon,
# Matias and Szegedy 1996); the norm, its root, has half the relative deviation: 4.4 %.
RELATIVE_ERROR = math.sqrt(2.0 / BUCKETS) / 2.0

# Elements per block; one table of signs and buckets serves all blocks.
_BLOCK = 1 << 15
_MASK = (1 << 64) - 1
# Tells NaN, Inf and -Inf apart in the sum that stands for where a tensor is not finite.
_NAN, _PLUS, _MINUS = 1, 3, 5


@dataclass(frozen=True)
class Sketch:
    """What is kept of a tensor; elements that are not finite are left out of all but their counts.

    Attributes:
        count: elements; a complex number counts as two.
        l2: ‖a‖, exact.
        minimum, maximum, mean: exact; 0 where nothing is finite.
        nans, infs, minus_infs: counts.
        pattern: 64 bits that are equal for two tensors that are not finite in the same places and the
            same way, and differ otherwise (but for one chance in 2^64).
        buckets: 256 sums of elements with random signs, float64.
    """

    count: int
    l2: float
    minimum: float
    maximum: float
    mean: float
    nans: int
    infs: int
    minus_infs: int
    pattern: int
    buckets: Floats

    @property
    def absmax(self) -> float:
        """The largest |a|."""
        return max(abs(self.minimum), abs(self.maximum))

    @property
    def lost(self) -> int:
        """How many elements are not finite."""
        return self.nans + self.infs + self.minus_infs

    def scaled(self, factor: float) -> Sketch:
        """The sketch of the tensor times a positive factor."""
        return replace(
            self,
            l2=self.l2 * factor,
            minimum=self.minimum * factor,
            maximum=self.maximum * factor,
            mean=self.mean * factor,
            buckets=self.buckets * factor,
        )


def sketch(array: Array) -> Sketch:
    """The sketch of an array of any shape, by its elements in C order.

    Args:
        array: any numeric dtype or bool; computed with in float64, block by block.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.astype(np.complex128).view(np.float64)
    signs, places = _table()
    buckets = np.zeros(BUCKETS)
    square = total = 0.0
    low, high = math.inf, -math.inf
    counts = [0, 0, 0]
    pattern = 0
    for number, start in enumerate(range(0, flat.size, _BLOCK)):
        block = flat[start : start + _BLOCK].astype(np.float64)
        key = _mixed(number)
        at = key % _BLOCK
        one = float(block @ block)
        if not math.isfinite(one):
            found, lost = _nonfinite(block, start)
            pattern = (pattern + lost) & _MASK
            counts = [a + b for a, b in zip(counts, found, strict=True)]
            finite = block[np.isfinite(block)]
            low, high = _range(low, high, finite)
            block[~np.isfinite(block)] = 0.0
            one = float(block @ block)
        else:
            low, high = _range(low, high, block)
        square += one
        total += float(block.sum())
        window = slice(at, at + block.size)
        block *= signs[window]
        sums = np.bincount(places[window], weights=block, minlength=BUCKETS)
        # Another window, another order of the buckets and another sign for each block: a value that
        # comes again one block later must not meet itself in the same bucket.
        sums = sums[np.arange(BUCKETS) ^ (key >> 32) % BUCKETS]
        buckets += -sums if key >> 63 else sums
    finite_count = flat.size - sum(counts)
    return Sketch(
        count=flat.size,
        l2=math.sqrt(square),
        minimum=low if finite_count else 0.0,
        maximum=high if finite_count else 0.0,
        mean=total / finite_count if finite_count else 0.0,
        nans=counts[0],
        infs=counts[1],
        minus_infs=counts[2],
        pattern=pattern,
        buckets=buckets,
    )


def difference(reference: Sketch, port: Sketch) -> tuple[float, float]:
    """An estimate of ‖p - r‖ over the finite elements, and its standard error.

    The sum of the squared differences of the buckets is an unbiased estimate of ‖p - r‖² with a
    variance of at most 2/256 of its square (Charikar, Chen and Farach-Colton 2002). The exact norms
    bound it: | ‖p‖ - ‖r‖ | <= ‖p - r‖ <= ‖p‖ + ‖r‖.

    Raises:
        ValueError: the two have other numbers of elements.
    """
    _check(reference, port)
    gap = port.buckets - reference.buckets
    with np.errstate(over="ignore", invalid="ignore"):
        found = math.sqrt(float(gap @ gap))
    if not found:
        return 0.0, 0.0
    if not reference.lost and not port.lost:
        found = max(found, abs(port.l2 - reference.l2))
        found = min(found, port.l2 + reference.l2)
    return found, RELATIVE_ERROR * found


def estimated(reference: Sketch, port: Sketch) -> Metrics:
    """The metrics of two tensors as far as their sketches tell; what they cannot tell is nan.

    Cosine and ratio are those of the buckets, which are exact where one tensor is a multiple of the
    other. Of elements that are not finite it is known whether they are the same, not how many differ:
    ``nonfinite_differs`` is then at least the difference of the counts, and at least 1.

    Raises:
        ValueError: the two have other numbers of elements.
    """
    l2, error = difference(reference, port)
    relative = 0.0
    if l2:
        relative = l2 / reference.l2 if reference.l2 else math.inf
    differs = 0
    if reference.pattern != port.pattern or reference.lost != port.lost:
        differs = max(1, abs(reference.lost - port.lost))
    a, b = reference.buckets, port.buckets
    own, other, product = float(a @ a), float(b @ b), float(a @ b)
    return Metrics(
        count=reference.count,
        max_abs=math.nan if l2 else 0.0,
        max_index=(),
        reference_at=math.nan,
        port_at=math.nan,
        relative_l2=relative,
        difference_l2=l2,
        reference_l2=reference.l2,
        port_l2=port.l2,
        cosine=max(-1.0, min(1.0, product / math.sqrt(own * other))) if own and other else math.nan,
        ratio=product / own if own else math.nan,
        outside=math.nan if l2 else 0.0,
        nan_reference=reference.nans,
        nan_port=port.nans,
        inf_reference=reference.infs + reference.minus_infs,
        inf_port=port.infs + port.minus_infs,
        nonfinite_differs=differs,
        error_l2=error,
    )


def estimated_changes(reference: tuple[Sketch, Sketch], port: tuple[Sketch, Sketch]) -> Metrics:
    """The metrics of two changes, from sketches of what was before and after each of them.

    Buckets of a change are the change of the buckets, so that a change is known as well as a tensor,
    however small it is beside what it is added to; its norm is an estimate too.

    Raises:
        ValueError: the sketches have other numbers of elements.
    """
    for before, after in (reference, port):
        _check(before, after)
    return estimated(_change(*reference), _change(*port))


def _change(before: Sketch, after: Sketch) -> Sketch:
    buckets = after.buckets - before.buckets
    return replace(after, buckets=buckets, l2=float(np.linalg.norm(buckets)))


def _check(reference: Sketch, port: Sketch) -> None:
    if reference.count != port.count:
        raise ValueError(f"sketches of {reference.count} and of {port.count} elements")


def _range(low: float, high: float, block: Floats) -> tuple[float, float]:
    if not block.size:
        return low, high
    return min(low, float(block.min())), max(high, float(block.max()))


def _nonfinite(block: Floats, start: int) -> tuple[tuple[int, int, int], int]:
    """Counts of NaN, Inf and -Inf, and a number that stands for where they are."""
    found = []
    pattern = 0
    for kind, mask in (
        (_NAN, np.isnan(block)),
        (_PLUS, np.isposinf(block)),
        (_MINUS, np.isneginf(block)),
    ):
        places = np.flatnonzero(mask).astype(np.uint64) + np.uint64(start)
        words = _splitmix(places * np.uint64(8) + np.uint64(kind))
        pattern = (pattern + int(np.bitwise_xor.reduce(words, initial=np.uint64(0)))) & _MASK
        found.append(places.size)
    return (found[0], found[1], found[2]), pattern


@lru_cache(maxsize=1)
def _table() -> tuple[Floats, NDArray[np.intp]]:
    """Signs and buckets by position, twice over, so that a window may begin anywhere in the first."""
    words = _splitmix(np.arange(_BLOCK, dtype=np.uint64))
    signs = 1.0 - 2.0 * (words >> np.uint64(63)).astype(np.float64)
    places = (words % np.uint64(BUCKETS)).astype(np.intp)
    return np.tile(signs, 2), np.tile(places, 2)


def _splitmix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Steele, Lea and Flood (Fast Splittable Pseudorandom Number Generators, 2014): 64 mixed bits each."""
    # Wrapping around is what is meant.
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _mixed(number: int) -> int:
    # Other numbers than those of positions.
    return int(_splitmix(np.array([number + (1 << 40)], np.uint64))[0])
