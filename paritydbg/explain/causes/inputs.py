"""Causes of batches that differ: scale, mean, layout, order, labels, told by the values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.site import LEFT, gap_of
from paritydbg.explain.causes.wiring import named_factor
from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.finding import Cause, Finding, Stage


def input_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """How the port's batch came from the reference's."""
    if finding.stage is not Stage.INPUT_DATA or finding.evidence is None:
        return
    pair = finding.evidence.pair
    raw = context.raw(pair)
    if raw is None:
        return
    if raw.reference.shape != raw.port.shape:
        yield from _layout(raw)
        return
    gap = gap_of(raw)
    dtypes = pair.first.dtype, pair.port[0].dtype
    if not gap:
        if dtypes[0] != dtypes[1]:
            yield _dtype(dtypes, "the values are equal")
        return
    whole = all(dtype.startswith(("int", "uint", "bool")) for dtype in dtypes)
    groups = (_labels, _order, _padding_side) if whole else (_order, _affine, _rounded)
    for group in groups:
        found = tuple(group(raw, gap))
        yield from found
        if found:
            return


def _dtype(dtypes: tuple[str, str], evidence: str) -> Cause:
    return Cause(
        "dtype-of-input", f"the reference is fed {dtypes[0]}, the port {dtypes[1]}", evidence, 0.8
    )


def _layout(raw: Sides) -> Iterator[Cause]:
    shapes = raw.reference.shape, raw.port.shape
    for order in permutations(range(raw.reference.ndim)):
        turned = raw.reference.transpose(order)
        if turned.shape == raw.port.shape and np.allclose(turned, raw.port, rtol=1e-5, atol=1e-6):
            yield Cause(
                "layout-nhwc-nchw",
                f"the port's batch has its axes in another order: transpose by {order}",
                f"shapes {shapes[0]} and {shapes[1]}, values equal after the transpose",
                0.97,
            )
            return
    if raw.reference.size == raw.port.size:
        yield Cause(
            "layout-nhwc-nchw",
            "the two batches hold as many numbers in another shape",
            f"shapes {shapes[0]} and {shapes[1]}",
            0.5,
        )


def _affine(raw: Sides, gap: float) -> Iterator[Cause]:
    """port = a · reference + b, for all elements or per channel."""
    fits = []
    for axis in _channel_axes(raw.port.ndim):
        a, b = _line(raw, axis)
        left = float(np.linalg.norm(raw.port - (a * raw.reference + b))) / gap
        if left <= LEFT:
            fits.append((left, axis, a, b))
    if not fits:
        return
    # A line for all entries, unless one per channel is far better.
    left, axis, a, b = fits[0]
    for other in fits[1:]:
        if other[0] < 0.2 * left:
            left, axis, a, b = other
    spread = float(raw.reference.std()) or 1.0
    moved = float(np.max(np.abs(b))) > 1e-3 * spread * max(1.0, float(np.max(np.abs(a))))
    by_255 = any(np.allclose(a, c, rtol=1e-3) for c in (255.0, 1 / 255))
    yield Cause(
        "normalise-mean" if moved and not by_255 else "normalise-scale",
        f"the port's batch is the reference's {_numbers(a, b, moved)}: the two normalise differently"
        + (", bytes divided by 255 once more on one side" if by_255 else ""),
        f"port = {_short(a)} · reference + {_short(b)}"
        f"{'' if axis is None else f' per entry of axis {axis}'} ({percent(left)} of the "
        "difference left)",
        round(0.95 - 0.5 * left, 3),
    )


def _channel_axes(dimensions: int) -> tuple[int | None, ...]:
    if dimensions >= 3:
        return None, 1, dimensions - 1
    return (None, 1) if dimensions == 2 else (None,)


def _line(raw: Sides, axis: int | None) -> tuple[Floats, Floats]:
    """The best slope and offset, per entry of an axis or for all."""
    others = tuple(i for i in range(raw.port.ndim) if i != axis)
    mean, port_mean = (s.mean(axis=others, keepdims=True) for s in (raw.reference, raw.port))
    centred = raw.reference - mean
    size = (centred * centred).sum(axis=others, keepdims=True)
    product = (centred * (raw.port - port_mean)).sum(axis=others, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(size > 0, product / size, 1.0)
    return a, port_mean - a * mean


def _numbers(a: Floats, b: Floats, moved: bool) -> str:
    slope = float(a.reshape(-1)[0])
    scaled = not np.allclose(a, 1.0, rtol=1e-3)
    words = f"times {named_factor(slope)}" if scaled else ""
    if moved:
        words += f"{' and ' if words else ''}moved by {_short(b)}"
    return words or "slightly moved"


def _short(values: Floats) -> str:
    flat = [float(v) for v in values.reshape(-1)]
    if all(math.isclose(v, flat[0], rel_tol=1e-4, abs_tol=1e-7) for v in flat):
        return f"{flat[0]:.5g}"
    return "[" + ", ".join(f"{v:.4g}" for v in flat[:4]) + (", …]" if len(flat) > 4 else "]")


def _order(raw: Sides, gap: float) -> Iterator[Cause]:
    """Samples, channels or pixels in another order."""
    for axis in range(raw.port.ndim):
        index = _matched(raw, axis)
        if index is None:
            continue
        left = float(np.linalg.norm(np.take(raw.reference, index, axis=axis) - raw.port)) / gap
        if left > LEFT:
            continue
        reversed_order = bool((index == np.arange(len(index))[::-1]).all())
        slug = "sample-order"
        if axis > 0:
            slug = "channel-order" if len(index) <= 4 else "label-flip-axes"
        yield Cause(
            slug,
            f"the port's batch holds the entries of axis {axis} "
            f"{'reversed' if reversed_order else 'in another order'}",
            f"reordered, the reference gives the port's batch ({percent(left)} of the difference "
            f"left); first entries: {index[:6].tolist()}",
            round(0.95 - 0.5 * left, 3),
        )
        return


def _matched(raw: Sides, axis: int) -> NDArray[np.intp] | None:
    """For each entry of the port's the reference's that is nearest, None unless each is taken once."""
    length = raw.port.shape[axis]
    if not 2 <= length <= 2048:
        return None
    mine = np.moveaxis(raw.reference, axis, 0).reshape(length, -1)
    yours = np.moveaxis(raw.port, axis, 0).reshape(length, -1)
    probes = np.random.default_rng(0).standard_normal((mine.shape[1], 2))
    left, right = mine @ probes, yours @ probes
    distance = (right[:, None, 0] - left[None, :, 0]) ** 2
    distance += (right[:, None, 1] - left[None, :, 1]) ** 2
    nearest = np.asarray(np.argmin(distance, axis=1))
    if len(np.unique(nearest)) != length or (nearest == np.arange(length)).all():
        return None
    return nearest


def _labels(raw: Sides, gap: float) -> Iterator[Cause]:
    """Whole numbers that are all off by the same."""
    moved = np.unique(raw.port - raw.reference)
    if len(moved) == 1:
        yield Cause(
            "label-offset",
            f"the port's values are the reference's {moved[0]:+g}: labels are counted from another "
            "number",
            f"every element differs by {moved[0]:+g}",
            0.95,
        )
        return
    changed = raw.port != raw.reference
    pairs = {
        (float(a), float(b)) for a, b in zip(raw.reference[changed], raw.port[changed], strict=True)
    }
    if len(pairs) == 1:
        ((mine, yours),) = pairs
        yield Cause(
            "ignored-label-differs",
            f"where the reference has {mine:g} the port has {yours:g}: another value stands for "
            "what is left out",
            f"{int(changed.sum())} elements differ, all in this way",
            0.85,
        )


def _padding_side(raw: Sides, gap: float) -> Iterator[Cause]:
    """Each row holds the same numbers, moved along by its own padding."""
    if raw.port.ndim != 2:
        return
    same = all(
        any(np.array_equal(np.roll(one, k), other) for k in range(len(one)))
        for one, other in zip(raw.reference[:64], raw.port[:64], strict=True)
    )
    if same:
        yield Cause(
            "tokenizer-padding-side",
            "every row holds the same tokens, moved along: one side pads on the left",
            "each row of the port's is a row of the reference's, rolled",
            0.9,
        )


def _rounded(raw: Sides, gap: float) -> Iterator[Cause]:
    """The same values, coarser."""
    relative = gap / (float(np.linalg.norm(raw.reference)) or 1.0)
    if relative < 5e-3:
        yield Cause(
            "dtype-of-input",
            "the port's batch is the reference's in lower precision, or resized or decoded by "
            "another library",
            f"relative difference {relative:.1e}",
            0.5,
        )
