"""Attention in float64 with everything that ports get wrong as a setting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from paritydbg.explain.context import Floats

Layout = Literal["", "halves", "pairs"]
Repeat = Literal["interleave", "tile"]
Fused = Literal["", "parts", "heads"]
Target = Literal["context", "scores", "probabilities"]
_MASKED = -1e30


@dataclass(frozen=True)
class Scheme:
    """How attention is calculated.

    Attributes:
        heads: of the queries; keys and values have as many as their width allows.
        scale: ``head``, ``width``, ``none``, ``head-squared`` (1/d), or a number as text.
        causal: the first diagonal that is left out, None without a causal mask.
        mask: which of the masks at hand is applied, ``""`` for none.
        inverted: whether that mask's entries mean what to leave out.
        rope: which entries are rotated together, ``""`` for no rotation.
        theta: base of the rotation, 0 where a table is given.
        repeat: how key and value heads are repeated: each in a row, or all in turn.
        fused: how a fused projection is cut: all queries first, or head by head.
        swapped: whether queries and keys changed places.
    """

    heads: int
    scale: str = "head"
    causal: int | None = None
    mask: str = ""
    inverted: bool = False
    rope: Layout = ""
    theta: float = 0.0
    repeat: Repeat = "interleave"
    fused: Fused = ""
    swapped: bool = False


@dataclass(frozen=True)
class Operands:
    """What attention is calculated from, all with the batch as axis 0.

    Attributes:
        query, key, value: (batch, length, width) or (batch, heads, length, width of a head); the
            query alone, with all three in it, for a fused projection.
        masks: by name, 1 where an entry is kept or additive.
        table: cosines and sines, (length, width of a head or half of it).
    """

    query: Floats
    key: Floats | None = None
    value: Floats | None = None
    masks: Mapping[str, Floats] = field(default_factory=dict)
    table: tuple[Floats, Floats] | None = None


def attend(scheme: Scheme, operands: Operands, target: Target) -> Floats | None:
    """The attention's context, scores or probabilities; None where the shapes do not fit."""
    parts = _split(scheme, operands)
    if parts is None:
        return None
    query, key, value = parts
    if scheme.swapped:
        if query.shape != key.shape:
            return None
        query, key = key, query
    if scheme.rope:
        rotated = _rotated(query, scheme, operands), _rotated(key, scheme, operands)
        if rotated[0] is None or rotated[1] is None:
            return None
        query, key = rotated[0], rotated[1]
    repeats = query.shape[1] // key.shape[1]
    if repeats * key.shape[1] != query.shape[1]:
        return None
    key = _repeated(key, repeats, scheme.repeat)
    products = query @ key.swapaxes(-1, -2) * _scale(scheme.scale, query)
    scores = _masked(products, scheme, operands)
    if scores is None:
        return None
    if target == "scores":
        return np.asarray(scores)
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities = grown / grown.sum(axis=-1, keepdims=True)
    if target == "probabilities" or value is None:
        return np.asarray(probabilities)
    context = probabilities @ _repeated(value, repeats, scheme.repeat)
    batch, heads, length, width = context.shape
    return np.asarray(context.swapaxes(1, 2).reshape(batch, length, heads * width))


def _split(scheme: Scheme, operands: Operands) -> tuple[Floats, Floats, Floats | None] | None:
    """Query, key and value as (batch, heads, length, width of a head)."""
    query = operands.query
    if scheme.fused:
        batch, length, whole = query.shape
        if whole % (3 * scheme.heads):
            return None
        width = whole // 3 // scheme.heads
        if scheme.fused == "parts":
            cut = query.reshape(batch, length, 3, scheme.heads, width).transpose(2, 0, 3, 1, 4)
        else:
            cut = query.reshape(batch, length, scheme.heads, 3, width).transpose(3, 0, 2, 1, 4)
        return cut[0], cut[1], cut[2]
    if operands.key is None:
        return None
    width = query.shape[-1] if query.ndim == 4 else query.shape[-1] // scheme.heads
    found = [_heads(x, width) for x in (query, operands.key, operands.value)]
    if found[0] is None or found[1] is None:
        return None
    return found[0], found[1], found[2]


def _heads(x: Floats | None, width: int) -> Floats | None:
    if x is None or x.ndim == 4:
        return x
    batch, length, whole = x.shape
    if not width or whole % width:
        return None
    return x.reshape(batch, length, whole // width, width).swapaxes(1, 2)


def _scale(name: str, query: Floats) -> float:
    heads, width = query.shape[1], query.shape[-1]
    known = {
        "head": 1 / math.sqrt(width),
        "width": 1 / math.sqrt(heads * width),
        "none": 1.0,
        "head-squared": 1.0 / width,
    }
    return known[name] if name in known else float(name)


def _rotated(x: Floats, scheme: Scheme, operands: Operands) -> Floats | None:
    width, length = x.shape[-1], x.shape[-2]
    if width % 2:
        return None
    half = width // 2
    if scheme.theta:
        frequencies = scheme.theta ** (-np.arange(half) / half)
        angles = np.outer(np.arange(length), frequencies)
        cos, sin = np.cos(angles), np.sin(angles)
    elif operands.table is not None:
        found = [_table(t, half, length, scheme.rope) for t in operands.table]
        if found[0] is None or found[1] is None:
            return None
        cos, sin = found[0], found[1]
    else:
        return None
    if scheme.rope == "halves":
        a, b = x[..., :half], x[..., half:]
        return np.asarray(np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1))
    a, b = x[..., 0::2], x[..., 1::2]
    turned = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return np.asarray(turned.reshape(x.shape))


def _table(table: Floats, half: int, length: int, layout: str) -> Floats | None:
    """One column per pair of a table that may hold each of them twice."""
    if table.shape[0] < length or table.shape[1] not in (half, 2 * half):
        return None
    cut = table[:length]
    if table.shape[1] == 2 * half:
        cut = cut[:, :half] if layout == "halves" else cut[:, 0::2]
    return np.asarray(cut)


def _repeated(x: Floats, times: int, how: str) -> Floats:
    if times == 1:
        return x
    return np.repeat(x, times, axis=1) if how == "interleave" else np.tile(x, (1, times, 1, 1))


def _masked(scores: Floats, scheme: Scheme, operands: Operands) -> Floats | None:
    rows, columns = scores.shape[-2:]
    if scheme.causal is not None:
        future = np.triu(np.ones((rows, columns), bool), k=scheme.causal + columns - rows)
        scores = np.where(future, _MASKED, scores)
    if scheme.mask:
        mask = _laid_out(operands.masks[scheme.mask], scores.shape)
        if mask is None:
            return None
        if mask.min() < -100:
            if scheme.inverted:
                return None
            return np.asarray(scores + np.maximum(mask, _MASKED))
        kept = mask == 0 if scheme.inverted else mask != 0
        scores = np.where(kept, scores, _MASKED)
    return np.asarray(scores)


def _laid_out(mask: Floats, shape: tuple[int, ...]) -> Floats | None:
    """The mask with axes (batch, heads, rows, columns)."""
    batch, _, rows, columns = shape
    if mask.ndim == 4:
        laid = mask
    elif mask.shape == (batch, columns):
        laid = mask[:, None, None, :]
    elif mask.shape == (rows, columns):
        laid = mask[None, None]
    elif mask.ndim == 3:
        laid = mask[:, None]
    else:
        return None
    fits = all(a in (1, b) for a, b in zip(laid.shape, shape, strict=True))
    return np.asarray(laid) if fits else None
