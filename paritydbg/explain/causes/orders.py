"""Causes where the port holds the reference's entries along an axis in another order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context
from paritydbg.model.finding import Cause

Index = NDArray[np.intp]


def order_causes(site: Site, context: Context) -> Iterable[Cause]:
    """The reference's entries along one axis in another order."""
    shape = site.port.shape
    for axis in reversed(range(len(shape))):
        length = shape[axis]
        if length < 2 or length > 1 << 16 or not _same_entries(site, axis):
            continue
        for slug, words, index in _orders(site, axis):
            left = site.left_of_port(np.take(site.reference, index, axis=axis))
            if left <= site.limit:
                if slug == "concat-order" and _two_way(site, context):
                    slug, words = "bidirectional-order", "the two directions of a recurrent layer"
                yield Cause(
                    slug,
                    f"the port holds the reference's entries along axis {axis} in another order: "
                    f"{words}",
                    f"the reference's values, reordered, give the port's "
                    f"({percent(left)} of the difference left)",
                    round(0.94 - 0.5 * left, 3),
                )
                return


def _two_way(site: Site, context: Context) -> bool:
    """Whether what is reordered is the output of a recurrent layer that runs both ways."""
    for source in site.sources:
        layer = context.layer(source.name)
        if layer is None or layer.attribute("bidirectional") is not True:
            continue
        if source.reference.shape == site.reference.shape and np.allclose(
            source.reference, site.reference, rtol=1e-4, atol=1e-6
        ):
            return True
    return False


def _same_entries(site: Site, axis: int) -> bool:
    """Whether sums along the other axes are the same numbers in any order."""
    others = tuple(a for a in range(site.port.ndim) if a != axis)
    mine = np.sort(np.abs(site.reference).sum(axis=others))
    yours = np.sort(np.abs(site.port).sum(axis=others))
    if not (np.isfinite(mine).all() and np.isfinite(yours).all()):
        return False
    return float(np.linalg.norm(mine - yours)) <= 1e-3 * float(np.linalg.norm(mine))


def _orders(site: Site, axis: int) -> Iterator[tuple[str, str, Index]]:
    length = site.port.shape[axis]
    plain = np.arange(length)
    is_batch = axis == 0 and site.port.ndim > 1
    yield (
        "sample-order" if is_batch else "channel-order",
        "reversed",
        plain[::-1],
    )
    for source in site.sources:
        inner = source.reference.shape[1:]
        if len(inner) > 1 and math.prod(inner) == length and axis == site.port.ndim - 1:
            numbers = plain.reshape(inner)
            for order in permutations(range(len(inner))):
                if order != tuple(sorted(order)):
                    words = f"{inner} flattened in the order of axes {order}"
                    yield "flatten-order", words, numbers.transpose(order).reshape(-1)
                    undone = np.argsort(numbers.transpose(order).reshape(-1))
                    yield "flatten-order", f"undone {words}", undone
    for cut in _rotations(site, axis):
        yield "concat-order", f"the first {cut} come last", np.roll(plain, -cut)
    for groups in range(2, length):
        if length % groups == 0:
            index = plain.reshape(groups, -1).T.reshape(-1)
            words = f"{groups} groups of {length // groups} interleaved"
            yield "channel-shuffle-order", words, index
    matched = _matched(site, axis)
    if matched is not None:
        yield "sample-order" if is_batch else "entry-order", "no simple rule", matched


def _rotations(site: Site, axis: int) -> Iterator[int]:
    """Cuts after which exchanging both parts brings the sums of the entries into line."""
    others = tuple(a for a in range(site.port.ndim) if a != axis)
    mine, yours = site.reference.sum(axis=others), site.port.sum(axis=others)
    limit = 1e-2 * float(np.linalg.norm(mine))
    for cut in range(1, min(len(mine), 4097)):
        if float(np.linalg.norm(np.roll(mine, -cut) - yours)) <= limit:
            yield cut


def _matched(site: Site, axis: int) -> Index | None:
    """For each of the port's entries the reference's nearest, None unless each is taken once."""
    mine = np.moveaxis(site.reference, axis, 0).reshape(site.port.shape[axis], -1)
    yours = np.moveaxis(site.port, axis, 0).reshape(site.port.shape[axis], -1)
    if mine.shape[0] > 1024:
        return None
    probes = np.random.default_rng(0).standard_normal((mine.shape[1], 4))
    left, right = mine @ probes, yours @ probes
    nearest = np.argmin(((right[:, None, :] - left[None, :, :]) ** 2).sum(axis=-1), axis=1)
    return nearest if len(set(nearest.tolist())) == len(nearest) else None
