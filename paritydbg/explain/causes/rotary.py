"""Causes in rotary position embeddings: tables and rotated tensors are read back into angles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding

Layout = Literal["halves", "pairs"]
_WORDS = {"halves": "two halves (i, i + d/2)", "pairs": "neighbours (2i, 2i + 1)"}
_WIDTHS = (64, 128, 32, 16, 8, 4)


@dataclass(frozen=True)
class _Rotation:
    """How one side rotates.

    Attributes:
        layout: which entries make a pair.
        frequencies: angle per position of each pair.
        offset: the first position.
        left: share of the gap that is left.
    """

    layout: Layout
    frequencies: Floats
    offset: int
    left: float


def rotary_causes(_finding: Finding, _context: Context, site: Site) -> Iterable[Cause]:
    """Tables of cosines or sines, or rotated queries and keys, that differ."""
    tables = _table(site.reference, site.gap, site.limit), _table(site.port, site.gap, site.limit)
    if tables[0] is not None and tables[1] is not None:
        yield from _told(tables[0], tables[1], "read back from the table")
        return
    for source in site.sources:
        if source.port.shape != site.port.shape or site.port.ndim not in (3, 4):
            continue
        for width in _widths(site.port.shape):
            mine = _fitted(source.reference, site.reference, width, site.gap, site.limit)
            yours = _fitted(source.port, site.port, width, site.gap, site.limit)
            if mine is not None and yours is not None:
                told = f"solved from {source.words}, heads {width} wide"
                yield from _told(mine, yours, told)
                return


def _told(mine: _Rotation, yours: _Rotation, words: str) -> Iterator[Cause]:
    left = max(mine.left, yours.left)
    shown = f"{words}: {percent(left)} of the difference left"
    sure = round(0.97 - 0.5 * left, 3)
    if mine.layout != yours.layout:
        yield Cause(
            "rope-interleaved-vs-half",
            f"the reference rotates {_WORDS[mine.layout]}, the port {_WORDS[yours.layout]}: permute "
            "the weights of queries and keys, or rotate as the reference does",
            shown,
            sure,
        )
    elif mine.offset != yours.offset:
        yield Cause(
            "rope-offset",
            f"the port counts positions from {yours.offset}, the reference from {mine.offset}",
            shown,
            sure,
        )
    elif not np.allclose(mine.frequencies, yours.frequencies, rtol=1e-3, atol=1e-6):
        opposite = np.allclose(mine.frequencies, -yours.frequencies, rtol=1e-3, atol=1e-6)
        bases = _base(mine.frequencies), _base(yours.frequencies)
        yield Cause(
            "rope-direction" if opposite else "rope-theta",
            "the port rotates the other way"
            if opposite
            else f"the port's base (theta) is about {bases[1]:.6g}, the reference's {bases[0]:.6g}",
            shown,
            sure,
        )


def _base(frequencies: Floats) -> float:
    """theta of frequencies theta^(-2j/d), by the second of them."""
    if len(frequencies) < 2 or not frequencies[1]:
        return math.nan
    return float(abs(frequencies[1]) ** -len(frequencies))


def _table(values: Floats, gap: float, limit: float) -> _Rotation | None:
    """The rotation that a table of cosines or sines, one row per position, stands for."""
    table = (
        values.reshape(values.shape[-2:])
        if values.ndim > 2 and values.size == math.prod(values.shape[-2:])
        else values
    )
    if table.ndim != 2 or table.shape[0] < 3 or table.shape[1] % 2 or np.abs(table).max() > 1.001:
        return None
    width = table.shape[1]
    half = width // 2
    layouts: tuple[Layout, ...] = ("halves", "pairs")
    for layout in layouts:
        first = np.arange(half) if layout == "halves" else np.arange(0, width, 2)
        other = first + half if layout == "halves" else first + 1
        if not np.allclose(table[:, first], table[:, other], atol=1e-6):
            continue
        for function, inverse in ((np.cos, np.arccos), (np.sin, np.arcsin)):
            second = np.clip(table[1, first], -1, 1)
            theta = _theta(np.asarray(inverse(second)), half)
            for offset in (0, 1, 2):
                frequencies = theta ** (-np.arange(half) / half)
                angles = np.outer(np.arange(table.shape[0]) + offset, frequencies)
                left = float(np.linalg.norm(function(angles) - table[:, first])) / gap
                if left <= limit:
                    return _Rotation(layout, frequencies, offset, left)
    return None


def _theta(frequencies: Floats, half: int) -> float:
    """theta of the frequencies of position 1, rounded where it comes near a round number."""
    if half < 2 or not 0 < float(frequencies[1]) < math.pi:
        return 10000.0
    theta = float(frequencies[1]) ** -half
    for usual in (10000.0, 500000.0, 1000000.0, 100.0, 1000.0, 100000.0):
        if math.isclose(theta, usual, rel_tol=0.02):
            return usual
    return theta


def _widths(shape: tuple[int, ...]) -> list[int]:
    """Widths of a head that the last axis may be cut into."""
    if len(shape) == 4:
        return [shape[-1]] if shape[-1] % 2 == 0 else []
    whole = shape[-1]
    found = [whole, *(w for w in _WIDTHS if w < whole and whole % w == 0)]
    return [w for w in found if w % 2 == 0]


def _fitted(x: Floats, y: Floats, width: int, gap: float, limit: float) -> _Rotation | None:
    """The rotation by angles position · frequency that leads from x to y."""
    layouts: tuple[Layout, ...] = ("halves", "pairs")
    for layout in layouts:
        before, after = _complex(x, width, layout), _complex(y, width, layout)
        length = before.shape[-2]
        if length < 3:
            continue
        axes = tuple(i for i in range(before.ndim) if i not in (before.ndim - 2, before.ndim - 1))
        turned = (np.conj(before) * after).sum(axis=axes)
        frequencies = np.angle(turned[1]) - np.angle(turned[0])
        frequencies = (frequencies + math.pi) % (2 * math.pi) - math.pi
        start = np.angle(turned[0])
        angles = start + np.outer(np.arange(length), frequencies)
        left = float(np.linalg.norm(after - before * np.exp(1j * angles))) / gap
        if left <= limit:
            first = float(frequencies[0])
            offset = round(float(start[0]) / first) if first else 0
            return _Rotation(layout, frequencies, offset, left)
    return None


def _complex(x: Floats, width: int, layout: str) -> NDArray[np.complex128]:
    """Pairs as complex numbers, axes (…, position, pair); heads of a (batch, position, all) in front."""
    if x.ndim == 3:
        batch, length, whole = x.shape
        x = x.reshape(batch, length, whole // width, width).swapaxes(1, 2)
    if layout == "halves":
        return np.asarray(x[..., : width // 2] + 1j * x[..., width // 2 :])
    return np.asarray(x[..., 0::2] + 1j * x[..., 1::2])
