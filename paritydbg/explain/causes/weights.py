"""Causes of weights that differ before the first step: never copied, turned, or in another order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.site import LEFT, gap_of
from paritydbg.explain.causes.weights_of import canonical
from paritydbg.explain.causes.wiring import fitted_factor, named_factor
from paritydbg.explain.context import Context, Sides
from paritydbg.model.finding import Cause, Finding, Stage

Index = NDArray[np.intp]


def weight_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """How the port's values came from the reference's, or that they did not."""
    if finding.stage is not Stage.WEIGHTS or finding.evidence is None:
        return
    sides = context.sides(finding.evidence.pair)
    if sides is None:
        return
    gap = gap_of(sides)
    if not gap:
        return
    owner = context.owner(finding.place)
    kind = owner.type.lower() if owner is not None else ""
    found = [*_turned(sides, gap), *_ordered(sides, gap, kind)]
    yield from found
    if not found:
        yield from _not_copied(finding, sides, gap)


def _turned(sides: Sides, gap: float) -> Iterator[Cause]:
    shape = sides.port.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return
    left = float(np.linalg.norm(sides.reference.T - sides.port)) / gap
    if left <= LEFT:
        yield Cause(
            "weight-transposed-square",
            "the port holds the weight the other way round; its shape is square, so nothing failed",
            f"the transposed reference gives the port's values ({percent(left)} of the difference "
            "left)",
            round(0.97 - 0.5 * left, 3),
        )


def _ordered(sides: Sides, gap: float, kind: str) -> Iterator[Cause]:
    """The same rows or columns in another order."""
    for axis in range(sides.port.ndim):
        for slug, words, index in _orders(sides.port.shape[axis], axis, kind):
            moved = np.take(sides.reference, index, axis=axis)
            left = float(np.linalg.norm(moved - sides.port)) / gap
            if left <= LEFT:
                yield Cause(
                    slug,
                    f"the port holds the reference's {'rows' if axis == 0 else 'columns'} in another "
                    f"order: {words}",
                    f"reordered, the reference gives the port's values ({percent(left)} of the "
                    "difference left)",
                    round(0.96 - 0.5 * left, 3),
                )
                return


def _orders(length: int, axis: int, kind: str) -> Iterator[tuple[str, str, Index]]:
    plain = np.arange(length)
    recurrent = any(word in kind for word in ("lstm", "gru", "rnn"))
    for blocks in (3, 4, 2):
        if length % blocks or length == blocks:
            continue
        rows = plain.reshape(blocks, -1)
        slug = "lstm-gate-order" if recurrent or blocks == 4 else "fused-qkv-layout"
        if blocks == 2:
            slug = "fused-halves-swapped"
        for order in permutations(range(blocks)):
            if order != tuple(range(blocks)):
                words = f"{blocks} blocks as {order}"
                yield slug, words, rows[list(order)].reshape(-1)
    for groups in range(2, length):
        if length % groups:
            continue
        inner = length // groups
        shuffled = plain.reshape(groups, inner).T.reshape(-1)
        slug = "fused-qkv-layout" if 3 in (groups, inner) else "channel-shuffle-order"
        if 2 in (groups, inner):
            slug = "rope-interleaved-vs-half"
        yield slug, f"{groups} groups of {inner} interleaved", shuffled
        for parts in (3, 2):
            # Per head q, k, v against all q, all k, all v.
            if inner % 1 or length % (parts * groups):
                continue
            size = length // (parts * groups)
            by_head = plain.reshape(parts, groups, size).transpose(1, 0, 2).reshape(-1)
            slug = "fused-qkv-layout" if parts == 3 else "rope-interleaved-vs-half"
            yield slug, f"{groups} heads each with its {parts} parts", by_head
            by_part = plain.reshape(groups, parts, size).transpose(1, 0, 2).reshape(-1)
            yield slug, f"{parts} parts each with its {groups} heads", by_part
        if inner > 1 and length % (2 * groups) == 0:
            half = length // groups // 2
            if half > 1:
                pairs = plain.reshape(groups, half, 2).transpose(0, 2, 1).reshape(-1)
                words = f"within each of {groups} heads even rows before odd ones"
                yield "rope-interleaved-vs-half", words, pairs
                yield "rope-interleaved-vs-half", f"undone: {words}", np.argsort(pairs)
    yield "channel-order", "reversed", plain[::-1]


def _not_copied(finding: Finding, sides: Sides, gap: float) -> Iterator[Cause]:
    port = sides.port
    running = canonical(finding.place) in ("running_mean", "running_var")
    slug = "running-stats-not-transplanted" if running else "weight-not-transplanted"
    many = f", like {len(finding.also)} more" if finding.also else ""
    scale = fitted_factor(sides.reference, port)
    if port.size and (port == port.flat[0]).all():
        yield Cause(
            slug,
            f"the port's {finding.port_place or finding.place} is still {port.flat[0]:g} "
            f"throughout{many}: it was not copied",
            f"all {port.size} elements are {port.flat[0]:g}",
            0.93,
        )
        return
    if scale is not None:
        left = float(np.linalg.norm(port - scale * sides.reference)) / gap
        if left <= LEFT:
            yield Cause(
                "weight-scaled",
                f"the port's values are {named_factor(scale, port.shape)} times the reference's",
                f"port = {scale:.7g} · reference ({percent(left)} of the difference left)",
                0.9,
            )
            return
    cosine = _cosine(sides)
    if abs(cosine) < 0.5:
        yield Cause(
            slug,
            f"the port's values have nothing to do with the reference's{many}: they were not copied "
            "and stand as they were initialised",
            f"cosine {cosine:.3f}; spread {sides.reference.std():.3g} in the reference, "
            f"{port.std():.3g} in the port",
            0.9,
        )
        return
    share = float((port != sides.reference).mean())
    yield Cause(
        "weight-not-transplanted",
        "the port starts from other values: other weights were loaded, or they were changed after "
        f"loading{many}",
        f"{share:.0%} of the elements differ, cosine {cosine:.5f}",
        0.5,
    )


def _cosine(sides: Sides) -> float:
    mine = sides.reference - sides.reference.mean()
    yours = sides.port - sides.port.mean()
    sizes = float(np.linalg.norm(mine)) * float(np.linalg.norm(yours))
    return float(np.vdot(mine, yours)) / sizes if sizes else 0.0
