"""Causes in what becomes of a sequence: its last step, its mean, its sum, with and without padding."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import Form, Recognised, Weights, recognise
from paritydbg.explain.causes.site import Site, Source
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding

Lengths = NDArray[np.intp]


def pooled_causes(_finding: Finding, _context: Context, site: Site) -> Iterable[Cause]:
    """How each side makes one vector of a sequence."""
    if site.port.ndim != 2:
        return
    lengths = tuple(_lengths(site))
    for source in site.sources:
        if source.port.ndim != 3 or source.port.shape[0] != site.port.shape[0]:
            continue
        part = _part(site, source.port.shape[2])
        if part is None:
            continue
        forms = tuple(_forms(source.port.shape, lengths))
        one = dataclasses.replace(part, sources=(source, *_states(part, site, source)))
        for found in recognise(one, forms):
            yield Cause(
                _slug(found),
                f"the reference takes {found.reference.words}, the port {found.port.words}",
                found.evidence,
                found.confidence,
            )
            return


def _slug(found: Recognised) -> str:
    kinds = {found.reference.kind, found.port.kind}
    if kinds <= {"last", "last-valid"} or "state" in kinds:
        return "rnn-sequence-length"
    if kinds <= {"mean", "mean-valid", "sum-by-length"}:
        return "mask-missing"
    return "pooling-over-time"


def _part(site: Site, width: int) -> Site | None:
    """The block of columns, as wide as the sequence's last axis, in which the two sides differ."""
    if site.port.shape[1] == width:
        return site
    if not width or site.port.shape[1] % width:
        return None
    sizes = (
        np.nan_to_num((site.port - site.reference) ** 2).sum(axis=0).reshape(-1, width).sum(axis=1)
    )
    block = int(sizes.argmax())
    if sizes.sum() - sizes[block] > 1e-3 * sizes[block]:
        return None
    cut = slice(block * width, (block + 1) * width)
    return dataclasses.replace(site, reference=site.reference[:, cut], port=site.port[:, cut])


def _states(part: Site, site: Site, source: Source) -> Iterator[Source]:
    """Other outputs of the same layer: an RNN's last state."""
    for other in site.sources:
        same = other.name == source.name and other is not source
        if same and other.port.size == part.port.size:
            shape = part.port.shape
            yield dataclasses.replace(
                other, reference=other.reference.reshape(shape), port=other.port.reshape(shape)
            )


def _lengths(site: Site) -> Iterator[Lengths]:
    """Lengths of the sequences: whole numbers, one per sample, or masks of ones and zeros."""
    batch = site.port.shape[0]
    for source in site.sources:
        values = source.port
        if values.shape == (batch,) and (values == np.round(values)).all() and values.min() > 0:
            yield values.astype(np.intp)
        if values.ndim == 2 and values.shape[0] == batch and np.isin(values, (0.0, 1.0)).all():
            counts = values.sum(axis=1).astype(np.intp)
            if counts.min() > 0 and (np.diff(values, axis=1) <= 0).all():
                yield counts


def _forms(shape: tuple[int, ...], lengths: tuple[Lengths, ...]) -> Iterator[Form]:
    def form(words: str, kind: str, value: Callable[[Floats], Floats]) -> Form:
        def checked(x: Floats, _weights: Weights) -> Floats | None:
            return value(x) if x.shape == shape else None

        return Form(words, kind, checked)

    yield form("the last step", "last", lambda x: x[:, -1])
    yield form("the first step", "first", lambda x: x[:, 0])
    yield form("the mean over all steps", "mean", lambda x: x.mean(axis=1))
    yield form("the sum over all steps", "sum", lambda x: x.sum(axis=1))
    yield form("the maximum over all steps", "max", lambda x: x.max(axis=1))
    for counts in lengths:
        if counts.max() <= shape[1]:
            yield from (form(*one) for one in _by_length(shape[1], counts))


def _by_length(
    steps: int, counts: Lengths
) -> Iterator[tuple[str, str, Callable[[Floats], Floats]]]:
    """Words, kind and calculation of what looks at each sequence's own steps."""
    kept = (np.arange(steps)[None] < counts[:, None])[..., None]
    last = np.arange(len(counts)), counts - 1
    divisor = counts[:, None].astype(np.float64)

    def ends(x: Floats) -> Floats:
        return np.asarray(x[last])

    def mean(x: Floats) -> Floats:
        return np.asarray((x * kept).sum(axis=1) / divisor)

    def spread(x: Floats) -> Floats:
        return np.asarray(x.sum(axis=1) / divisor)

    def highest(x: Floats) -> Floats:
        return np.asarray(np.where(kept, x, -np.inf).max(axis=1))

    yield "each sequence's own last step", "last-valid", ends
    yield "the mean over each sequence's own steps", "mean-valid", mean
    yield "the sum over all steps divided by each sequence's length", "sum-by-length", spread
    yield "the maximum over each sequence's own steps", "max-valid", highest
