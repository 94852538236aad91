"""Finds the tensors that attention was calculated from among what ran before, by their names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.attention_schemes import Operands
from paritydbg.explain.causes.site import Site, Source
from paritydbg.explain.context import Floats

_FUSED = ("qkv", "c_attn", "query_key_value", "in_proj")
_NOISE = ("proj", "linear", "layer", "lin", "to_", "fc", "w", "_", "attn")
# Samples of the batch that are recalculated.
_SAMPLES = 2

Found = tuple[Operands, Operands, NDArray[np.intp]]


def find_operands(site: Site) -> Found | None:
    """Both sides' operands and the samples that were kept; None where there is no attention."""
    if site.port.ndim not in (3, 4):
        return None
    batch = site.port.shape[0]
    axes = tuple(range(1, site.port.ndim))
    worst = np.nan_to_num((site.port - site.reference) ** 2).sum(axis=axes)
    kept = np.sort(np.argsort(-worst)[:_SAMPLES])
    named = _named(site, batch)
    if "fused" in named and "q" not in named:
        chosen = [named["fused"], None, None]
    elif "q" in named and "k" in named:
        chosen = [named["q"], named["k"], named.get("v")]
    else:
        return None
    if site.port.ndim == 3 and not _may_come_of(chosen, site):
        return None
    return (
        _operands(chosen, site, kept, of_port=False),
        _operands(chosen, site, kept, of_port=True),
        kept,
    )


def _may_come_of(chosen: list[Source | None], site: Site) -> bool:
    """Whether (batch, length, width) has the queries' length and the width of a context or of scores."""
    query, key = chosen[0], chosen[1]
    if query is None or query.port.ndim != 3:
        return query is not None
    batch, length, width = query.port.shape
    widths = {width, width // 3 if key is None else key.port.shape[-2]}
    return site.port.shape[:2] == (batch, length) and site.port.shape[2] in widths


def _named(site: Site, batch: int) -> dict[str, Source]:
    """The nearest tensor of each part."""
    found: dict[str, Source] = {}
    for source in site.sources:
        part = part_of(source.name)
        usable = source.port.ndim in (3, 4) and source.port.shape[0] == batch
        if part and usable and source.words.startswith("the output"):
            found.setdefault(part, source)
    return found


def part_of(name: str) -> str:
    """``q``, ``k``, ``v`` or ``fused`` for the name of a projection, ``""`` for any other layer."""
    last = name.rpartition(".")[2].lower()
    if any(word in last for word in _FUSED):
        return "fused"
    for word in _NOISE:
        last = last.replace(word, "")
    for part, word in (("q", "query"), ("k", "key"), ("v", "value")):
        if last.startswith((part, word)) and len(last) <= len(word) + 3:
            return part
    return ""


def _operands(
    chosen: list[Source | None], site: Site, kept: NDArray[np.intp], of_port: bool
) -> Operands:
    def read(source: Source) -> Floats:
        return source.port if of_port else source.reference

    query, key, value = (None if s is None else read(s)[kept] for s in chosen)
    masks: dict[str, Floats] = {}
    tables: list[Floats] = []
    for source in site.sources:
        values = read(source)
        if _mask(values):
            shared = values.shape[0] != site.port.shape[0]
            masks.setdefault(source.words, values if shared else values[kept])
        elif _table(values):
            tables.append(values.reshape(values.shape[-2:]))
    if query is None:
        raise ValueError("attention without queries")
    return Operands(query, key, value, masks, _pair(tables))


def _mask(values: Floats) -> bool:
    """Whether a tensor looks like a mask: two values, one of them 0."""
    if not 2 <= values.ndim <= 4 or values.size > 1 << 20:
        return False
    low, high = float(values.min()), float(values.max())
    return (
        (low, high) == (0.0, 1.0)
        and bool(np.isin(values, (0.0, 1.0)).all())
        or (high == 0.0 and low < -100 and len(np.unique(values)) == 2)
    )


def _table(values: Floats) -> bool:
    flat = values.ndim == 2 or (values.ndim > 2 and values.size == np.prod(values.shape[-2:]))
    return bool(flat and values.size and np.abs(values).max() <= 1.001)


def _pair(tables: list[Floats]) -> tuple[Floats, Floats] | None:
    """Cosines and sines: two tables whose squares add up to 1; cosines begin with 1."""
    for number, one in enumerate(tables):
        for other in tables[number + 1 :]:
            if one.shape == other.shape and np.allclose(one**2 + other**2, 1.0, atol=1e-4):
                return (one, other) if one[0, 0] >= other[0, 0] else (other, one)
    return None
