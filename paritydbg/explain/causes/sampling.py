"""Few elements of a large tensor in place of all, where a calculation looks no further than those."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Floats

# What an element of the output depends on: itself, its sample (axis 0), its channel (axis 1), all.
Reach = Literal["element", "sample", "channel", "all"]
_ENOUGH = 1 << 15


@dataclass(frozen=True)
class Sample:
    """A site cut down, and how to cut what goes into it.

    Attributes:
        site: with the chosen elements only.
        pick: a source's values -> those that the chosen elements depend on, None where it cannot be.
        weights: the layer's parameters -> those that the chosen elements need.
    """

    site: Site
    pick: Callable[[Floats], Floats | None]
    weights: Callable[[Mapping[str, Floats]], Mapping[str, Floats]]


@lru_cache(maxsize=8)
def _cut(site: _ById, reach: Reach) -> Sample:
    whole = site.site
    shape = whole.port.shape
    if reach == "element":
        index = _worst(np.abs(whole.port - whole.reference).reshape(-1), _ENOUGH)
        return Sample(
            _smaller(whole, whole.reference.reshape(-1)[index], whole.port.reshape(-1)[index]),
            lambda values: values.reshape(-1)[index] if values.shape == shape else None,
            lambda weights: weights,
        )
    axis = 0 if reach == "sample" else 1
    if reach == "all" or len(shape) <= axis or whole.port.size <= _ENOUGH:
        fits = _same_shape(shape) if reach != "all" else _anything
        return Sample(whole, fits, lambda weights: weights)
    squared = np.nan_to_num(whole.port - whole.reference) ** 2
    others = tuple(a for a in range(len(shape)) if a != axis)
    most = max(1, _ENOUGH * shape[axis] // whole.port.size)
    index = _worst(squared.sum(axis=others), most)

    def pick(values: Floats) -> Floats | None:
        return np.take(values, index, axis=axis) if values.shape == shape else None

    def cut_weights(weights: Mapping[str, Floats]) -> Mapping[str, Floats]:
        if axis == 0:
            return weights
        return {n: w[index] if w.shape == (shape[1],) else w for n, w in weights.items()}

    smaller = _smaller(
        whole, np.take(whole.reference, index, axis=axis), np.take(whole.port, index, axis=axis)
    )
    return Sample(smaller, pick, cut_weights)


@dataclass(frozen=True, eq=False)
class _ById:
    """A site as a key: two sites are never the same."""

    site: Site

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.site is self.site

    def __hash__(self) -> int:
        return id(self.site)


def sampled(site: Site, reach: Reach) -> Sample:
    """The part of a site that is enough to judge a calculation of that reach."""
    return _cut(_ById(site), reach)


def _worst(differences: Floats, most: int) -> NDArray[np.intp]:
    """Indices of the largest differences, half of them, and of evenly spread others."""
    if differences.size <= most:
        return np.arange(differences.size)
    half = max(1, most // 2)
    largest = np.argpartition(-np.nan_to_num(differences, posinf=0.0), half)[:half]
    spread = np.linspace(0, differences.size - 1, most - half, dtype=np.intp)
    return np.asarray(np.unique(np.concatenate([largest, spread])))


def _smaller(site: Site, reference: Floats, port: Floats) -> Site:
    both = np.isfinite(reference) & np.isfinite(port)
    gap = float(np.linalg.norm(port[both] - reference[both]))
    return dataclasses.replace(site, reference=reference, port=port, gap=gap or site.gap)


def _same_shape(shape: tuple[int, ...]) -> Callable[[Floats], Floats | None]:
    return lambda values: values if values.shape == shape else None


def _anything(values: Floats) -> Floats | None:
    return values
