"""Causes in wiring: factors, missing additions, orders of entries, told by the values alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import Form, Weights, percent, recognise
from paritydbg.explain.causes.site import Site, Source
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding

Index = NDArray[np.intp]


def wiring_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """A factor, an addition that one side lacks, or the same entries in another order."""
    found = [
        *_order(site),
        *_layout(site),
        *_addition(site),
        *_factor(finding, context, site),
    ]
    yield from found


def _factor(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    scale = fitted_factor(site.reference, site.port)
    if scale is None:
        return
    left = site.left_of_port(scale * site.reference)
    if left > site.limit:
        return
    owner = context.owner(finding.place)
    words = f"{owner.type} {owner.name}".lower() if owner is not None else ""
    slug = "values-scaled"
    if "emb" in words:
        slug = "embedding-scale"
    elif "att" in words:
        slug = "attention-scale"
    yield Cause(
        slug,
        f"the port's values are {named_factor(scale, site.port.shape)} times the reference's",
        f"port = {scale:.7g} · reference ({percent(left)} of the difference left)",
        round(0.85 - 0.5 * left, 3),
    )


def fitted_factor(reference: Floats, port: Floats) -> float | None:
    """The factor that leads from the reference to the port best, None where there is none but 1."""
    both = np.isfinite(reference) & np.isfinite(port)
    size = float(np.vdot(reference[both], reference[both]))
    if not size:
        return None
    scale = float(np.vdot(reference[both], port[both])) / size
    return scale if scale and not math.isclose(scale, 1.0, rel_tol=1e-9) else None


def named_factor(scale: float, shape: Iterable[int] = ()) -> str:
    """A factor in words: ``2``, ``1/8``, ``√64``, else its digits."""
    for value, words in _named(shape):
        if math.isclose(scale, value, rel_tol=1e-4):
            return words
    return f"{scale:.6g}"


def _named(shape: Iterable[int]) -> Iterator[tuple[float, str]]:
    yield -1.0, "-1"
    for number in dict.fromkeys((*range(2, 17), 24, 32, 48, 64, 96, 128, 255, 256, 512, *shape)):
        if number > 1:
            yield float(number), f"{number}"
            yield 1 / number, f"1/{number}"
            yield math.sqrt(number), f"√{number}"
            yield 1 / math.sqrt(number), f"1/√{number}"


def _addition(site: Site) -> Iterable[Cause]:
    """One side adds a tensor that both had at hand, the other does not."""
    for source in site.sources:
        if source.port.shape != site.port.shape:
            continue
        for sign, words in (
            (-1.0, f"the port leaves out {source.words}, which the reference adds"),
            (1.0, f"the port adds {source.words}, which the reference does not"),
        ):
            left = site.left_of_port(site.reference + sign * source.reference)
            if left <= site.limit:
                yield Cause(
                    "residual-missing" if sign < 0 else "residual-added",
                    words,
                    f"reference {'-' if sign < 0 else '+'} {source.words} gives the port's values "
                    f"({percent(left)} of the difference left)",
                    round(0.92 - 0.5 * left, 3),
                )
                return


def _order(site: Site) -> Iterable[Cause]:
    """The reference's entries along one axis in another order."""
    shape = site.port.shape
    for axis in reversed(range(len(shape))):
        length = shape[axis]
        if length < 2 or length > 1 << 16 or not _same_entries(site, axis):
            continue
        for slug, words, index in _orders(site, axis):
            left = site.left_of_port(np.take(site.reference, index, axis=axis))
            if left <= site.limit:
                yield Cause(
                    slug,
                    f"the port holds the reference's entries along axis {axis} in another order: "
                    f"{words}",
                    f"the reference's values, reordered, give the port's "
                    f"({percent(left)} of the difference left)",
                    round(0.94 - 0.5 * left, 3),
                )
                return


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


def _layout(site: Site) -> Iterable[Cause]:
    """Both sides reshape the same tensor, with its axes in another order."""
    for source in site.sources:
        if source.reference.size != site.port.size or not 2 <= source.reference.ndim <= 5:
            continue
        narrowed = (source,)
        forms = tuple(_reshapes(source, site.port.shape))
        reduced = _with_sources(site, narrowed)
        for found in recognise(reduced, forms):
            flat = site.port.ndim < source.reference.ndim
            yield Cause(
                "flatten-order" if flat else "axes-order",
                f"the reference reshapes {found.reference.words}, the port {found.port.words}",
                found.evidence,
                found.confidence,
            )
            return


def _with_sources(site: Site, sources: tuple[Source, ...]) -> Site:
    return Site(site.words, site.reference, site.port, site.gap, site.limit, sources)


def _reshapes(source: Source, shape: tuple[int, ...]) -> Iterator[Form]:
    for order in permutations(range(source.reference.ndim)):

        def value(x: Floats, _weights: Weights, order: tuple[int, ...] = order) -> Floats:
            return x.transpose(order).reshape(shape)

        words = "it as it lies" if order == tuple(sorted(order)) else f"its axes {order}"
        yield Form(words, "reshape", value)
