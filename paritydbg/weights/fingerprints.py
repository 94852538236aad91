"""Parameters recognised by their values, whatever they are called; cheap keys first, then proof."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.model.pair import ParameterPair
from paritydbg.model.transform import Transform
from paritydbg.weights.shapes import by_value, constant

Array = NDArray[Any]
Key = tuple[int, float, float]

# Fused tensors of more parts than this are not looked for.
_MOST_PARTS = 8


def pair_by_value(reference: Mapping[str, Array], port: Mapping[str, Array]) -> list[ParameterPair]:
    """Pairs whose values are equal up to reshape, order of axes or of rows, joining or cutting.

    Constant tensors (zeros, ones) and values that occur more than once on a side prove nothing and
    are left alone.

    Args:
        reference, port: values of the parameters that have no partner yet, by name.
    """
    left, right = _telling(reference), _telling(port)
    pairs: list[ParameterPair] = []
    for key, names in left.items():
        others = right.get(key, [])
        proved = [
            (name, other, transform)
            for name in names
            for other in others
            if (transform := by_value(reference[name], port[other])) is not None
        ]
        for name, other, transform in proved:
            once = (
                sum(n == name for n, _, _ in proved) == sum(o == other for _, o, _ in proved) == 1
            )
            if once:
                pairs.append(ParameterPair((name,), (other,), transform, "value", 0.95))
    used = {name for pair in pairs for name in pair.reference}
    taken = {name for pair in pairs for name in pair.port}
    parts = {name: reference[name] for name in reference if name not in used}
    wholes = {name: port[name] for name in port if name not in taken}
    for whole, pieces in _fused(wholes, parts):
        transform = Transform("concatenate", axis=0)
        pairs.append(ParameterPair(pieces, (whole,), transform, "value", 0.95))
        used.update(pieces)
        taken.add(whole)
    parts = {name: array for name, array in wholes.items() if name not in taken}
    wholes = {name: reference[name] for name in reference if name not in used}
    for whole, pieces in _fused(wholes, parts):
        sections = tuple(int(port[name].shape[0]) for name in pieces)
        transform = Transform("split", axis=0, sections=sections)
        pairs.append(ParameterPair((whole,), pieces, transform, "value", 0.95))
    return pairs


def _telling(values: Mapping[str, Array]) -> dict[Key, list[str]]:
    """Names by a key that no change of layout alters: number of elements, smallest and largest."""
    found: dict[Key, list[str]] = {}
    for name, array in values.items():
        if array.size > 1 and array.dtype.kind in "fiu" and not constant(array):
            low, high = float(array.min()), float(array.max())
            if low == low and high == high:
                found.setdefault((array.size, low, high), []).append(name)
    return found


def _fused(
    wholes: Mapping[str, Array], parts: Mapping[str, Array]
) -> list[tuple[str, tuple[str, ...]]]:
    """Each whole that is made of two or more of the parts, one behind the other along axis 0."""
    found: list[tuple[str, tuple[str, ...]]] = []
    free = {name: array for name, array in parts.items() if array.ndim and not constant(array)}
    for whole, array in wholes.items():
        if not array.ndim or constant(array):
            continue
        fitting = {
            name: part
            for name, part in free.items()
            if part.shape[1:] == array.shape[1:] and 0 < part.shape[0] < array.shape[0]
        }
        pieces = _pieces(array, fitting)
        if pieces:
            found.append((whole, pieces))
            for name in pieces:
                del free[name]
    return found


def _pieces(whole: Array, parts: Mapping[str, Array]) -> tuple[str, ...]:
    start = 0
    names: list[str] = []
    rest = dict(parts)
    while start < whole.shape[0] and len(names) < _MOST_PARTS:
        name = _part_at(whole, start, rest)
        if name is None:
            return ()
        names.append(name)
        start += rest.pop(name).shape[0]
    return tuple(names) if start == whole.shape[0] and len(names) > 1 else ()


def _part_at(whole: Array, start: int, parts: Mapping[str, Array]) -> str | None:
    first = whole[start]
    for name, part in parts.items():
        end = start + part.shape[0]
        if (
            end <= whole.shape[0]
            and np.array_equal(part[0], first)
            and np.array_equal(whole[start:end], part)
        ):
            return name
    return None
