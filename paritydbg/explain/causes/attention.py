"""Causes in attention: the reference's whole calculation is found, then the one change that is the port's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from paritydbg.explain.causes.attention_schemes import (
    Fused,
    Layout,
    Operands,
    Repeat,
    Scheme,
    Target,
    attend,
)
from paritydbg.explain.causes.attention_settings import KnownSettings
from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.operands import find_operands
from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding

# Multiplications that all tries together may take.
_BUDGET = 2e10
_SLUGS = {
    "heads": "num-heads-mismatch",
    "scale": "attention-scale",
    "causal": "causal-off-by-one",
    "mask": "mask-missing",
    "inverted": "mask-sign",
    "rope": "rope-interleaved-vs-half",
    "theta": "rope-theta",
    "repeat": "kv-head-repeat-order",
    "fused": "fused-qkv-layout",
    "swapped": "qk-swapped",
}


@dataclass(frozen=True)
class _Side:
    """One side's tensors, few samples of the batch, and what they lead to."""

    operands: Operands
    wanted: Floats
    gap: float

    def left(self, scheme: Scheme, target: Target) -> float:
        value = attend(scheme, self.operands, target)
        if value is None:
            return math.inf
        if value.shape != self.wanted.shape and value.shape[1] == 1:
            value = value[:, 0]
        if value.shape != self.wanted.shape:
            return math.inf
        return float(np.linalg.norm(value - self.wanted)) / self.gap


def attention_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """The one setting in which the port's attention is another."""
    found = find_operands(site)
    if found is None or not np.isfinite(site.port).all() or not np.isfinite(site.reference).all():
        return
    reference, port, batch = found
    wanted, other = site.reference[batch], site.port[batch]
    gap = float(np.linalg.norm(other - wanted))
    if not gap:
        return
    sides = _Side(reference, wanted, gap), _Side(port, other, gap)
    known = KnownSettings.of(finding, context, site)
    for target in _targets(wanted):
        scheme = _search(sides[0], known, target, site.limit)
        if scheme is None:
            continue
        best = _changed(sides[1], scheme, known, target, site.limit)
        if best is not None:
            yield _told(scheme, *best)
        return


def _told(scheme: Scheme, other: Scheme, left: float) -> Cause:
    name = next(n for n in _SLUGS if getattr(scheme, n) != getattr(other, n))
    mine, yours = getattr(scheme, name), getattr(other, name)
    slug = _SLUGS[name]
    if name == "causal" and (mine is None or yours is None):
        slug = "mask-missing"
    if name == "rope" and not (mine and yours):
        slug = "rope-missing"
    return Cause(
        slug,
        f"attention with {_words(name, yours)} gives the port's values, with {_words(name, mine)} "
        "the reference's",
        f"recomputed in float64 from queries, keys and values ({percent(left)} of the difference "
        "left)",
        round(0.97 - 0.5 * left, 3),
    )


def _words(name: str, value: object) -> str:
    if name == "heads":
        return f"{value} heads"
    if name == "scale":
        told = {
            "head": "1/√(width of a head)",
            "width": "1/√(width of all heads)",
            "none": "1",
            "head-squared": "1/(width of a head)",
        }
        return f"scores scaled by {told.get(str(value), value)}"
    if name == "causal":
        return "no causal mask" if value is None else f"a causal mask from diagonal {value}"
    if name == "mask":
        return f"the mask {value}" if value else "no mask"
    if name == "inverted":
        return "the mask inverted" if value else "the mask as it is"
    if name == "rope":
        return {"": "no rotation", "halves": "halves rotated", "pairs": "neighbours rotated"}[
            str(value)
        ]
    if name == "theta":
        return f"theta {value:g}" if value else "the table's angles"
    if name == "repeat":
        told = {"interleave": "each key head repeated in a row", "tile": "all key heads in turn"}
        return told[str(value)]
    if name == "fused":
        told = {
            "parts": "all queries, keys, values in turn",
            "heads": "queries, keys, values per head",
        }
        return f"a fused projection cut as {told.get(str(value), 'separate ones')}"
    return "queries and keys exchanged" if value else "queries and keys in place"


def _targets(wanted: Floats) -> tuple[Target, ...]:
    """What the values may be, by their shape."""
    rows = wanted.sum(axis=-1)
    if np.allclose(rows, 1.0, atol=1e-3) and (wanted >= 0).all():
        return ("probabilities",)
    return ("scores",) if wanted.ndim == 4 else ("context", "scores")


def _search(side: _Side, known: KnownSettings, target: Target, limit: float) -> Scheme | None:
    """The scheme that gives the reference's values, the likeliest of those that do."""
    layouts: tuple[Layout, ...] = ("halves", "pairs")
    ropes: list[tuple[Layout, float]] = [("", 0.0)]
    if side.operands.table is not None:
        ropes = [*((layout, 0.0) for layout in layouts), ("", 0.0)]
    ropes += [(layout, theta) for theta in known.thetas for layout in layouts]
    masks = [("", False)]
    masks += [(name, inverted) for name in side.operands.masks for inverted in (False, True)]
    fused: tuple[Fused, ...] = ("parts", "heads") if side.operands.key is None else ("",)
    causal = (None, 1)
    scales = known.scales[:3]
    repeats: tuple[Repeat, ...] = ("interleave", "tile")
    choices: Sequence[Sequence[object]] = (
        known.heads,
        ropes,
        causal,
        masks,
        scales,
        fused,
        repeats,
    )
    ranked = sorted(
        product(*(range(len(c)) for c in choices)), key=lambda numbers: (sum(numbers), numbers)
    )
    most = _most_tries(side)
    tried: set[Scheme] = set()
    for a, b, c, d, e, f, g in ranked:
        (layout, theta), (mask, inverted) = ropes[b], masks[d]
        scheme = Scheme(
            known.heads[a],
            scales[e],
            causal[c],
            mask,
            inverted,
            layout,
            theta,
            repeats[g],
            fused[f],
        )
        if scheme in tried:
            continue
        tried.add(scheme)
        if len(tried) > most:
            return None
        if side.left(scheme, target) <= limit:
            return scheme
    return None


def _most_tries(side: _Side) -> int:
    query = side.operands.query
    length = query.shape[-2]
    each = 4.0 * query.size * length
    return int(min(4000, max(50, _BUDGET / max(each, 1.0))))


def _changed(
    side: _Side, scheme: Scheme, known: KnownSettings, target: Target, limit: float
) -> tuple[Scheme, float] | None:
    """The single change of a scheme that gives the port's values best."""
    best: tuple[Scheme, float] | None = None
    for other in _changes(scheme, side.operands, known):
        left = side.left(other, target)
        if left <= limit and (best is None or left < 0.8 * best[1]):
            best = other, left
    return best


def _changes(scheme: Scheme, operands: Operands, known: KnownSettings) -> Iterator[Scheme]:
    if scheme.heads:
        for heads in known.heads:
            yield replace(scheme, heads=heads)
    for scale in known.scales:
        yield replace(scheme, scale=scale)
    for causal in (None, 1, 2, 0):
        yield replace(scheme, causal=causal)
    for mask in ("", *operands.masks):
        yield replace(scheme, mask=mask, inverted=False)
    yield replace(scheme, inverted=not scheme.inverted)
    layouts: tuple[Layout, ...] = ("halves", "pairs")
    for layout in layouts:
        if scheme.rope:
            yield replace(scheme, rope=layout)
        else:
            for theta in known.thetas:
                yield replace(scheme, rope=layout, theta=theta)
    yield replace(scheme, rope="")
    for theta in known.thetas:
        yield replace(scheme, theta=theta)
    yield replace(scheme, repeat="tile" if scheme.repeat == "interleave" else "interleave")
    if scheme.fused:
        yield replace(scheme, fused="heads" if scheme.fused == "parts" else "parts")
    yield replace(scheme, swapped=not scheme.swapped)
