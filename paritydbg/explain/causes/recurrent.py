"""Causes in recurrent layers: the reference's calculation is found, then the port's one change of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import Weights, percent
from paritydbg.explain.causes.recurrent_schemes import Recurrence, run
from paritydbg.explain.causes.site import Site
from paritydbg.explain.causes.weights_of import weights_of
from paritydbg.explain.context import Context, Floats
from paritydbg.explain.reading import family_of
from paritydbg.model.finding import Cause, Finding

_BLOCKS = {"LSTM": 4, "GRU": 3, "RNN": 1}
_GATES = {"LSTM": "input, forget, cell, output", "GRU": "reset, update, new", "RNN": "the one gate"}
_SLUGS = {
    "reset_before": "gru-reset-after",
    "merged": "gru-bias-merged",
    "lengths": "rnn-sequence-length",
    "zeroed": "rnn-sequence-length",
    "swapped": "bidirectional-order",
    "forget": "lstm-forget-bias",
    "fresh": "rnn-state-order",
    "relu": "rnn-nonlinearity",
}
_WORDS = {
    "reset_before": "applies the reset gate before the recurrent product, not after it",
    "merged": "adds the candidate's recurrent bias outside of the reset gate",
    "lengths": "runs through the padding: it is not given the sequences' lengths, so the way back "
    "begins in the padding",
    "zeroed": "does not zero what lies beyond a sequence's end",
    "swapped": "joins the two directions the other way round",
    "forget": "adds 1 to the forget gate",
    "fresh": "begins with zeros, not with the state that it is given",
    "relu": "applies another nonlinearity",
}


@dataclass(frozen=True)
class _Given:
    """What the layer was fed, the same on both sides."""

    x: Floats
    weights: Weights
    state: Floats | None
    lengths: NDArray[np.intp]


def recurrent_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """The one setting in which the port's recurrence is another."""
    layers = context.layers_of(finding)
    kind = family_of(layers[0]) if layers[0] is not None else ""
    if kind not in _BLOCKS or site.port.ndim != 3:
        return
    batch_first = layers[0] is not None and bool(layers[0].attribute("batch_first"))
    turned = site if batch_first else _turned(site)
    weights = weights_of(layers, context, finding.step)[0]
    for given in _givens(turned, weights, batch_first):
        scheme = _search(kind, given, turned)
        if scheme is None:
            continue
        found = _changed(scheme, given, turned)
        if found is not None:
            yield _told(scheme, *found)
        return


def _told(scheme: Recurrence, other: Recurrence, left: float) -> Cause:
    shown = f"recomputed in float64 from the layer's input and weights ({percent(left)} of the "
    shown += "difference left)"
    sure = round(0.97 - 0.5 * left, 3)
    if scheme.gates != other.gates:
        slug = "lstm-gate-order" if scheme.kind == "LSTM" else "gru-gate-order"
        return Cause(
            slug,
            f"the port reads the blocks of its weights as gates in the order {other.gates}, where "
            f"torch's order is {_GATES[scheme.kind]}",
            shown,
            sure,
        )
    name = next(n for n in _SLUGS if getattr(scheme, n) != getattr(other, n))
    turned = getattr(scheme, name) and not getattr(other, name)
    words = f"the port {_WORDS[name]}"
    if turned and name not in ("lengths", "zeroed"):
        words = f"the reference, unlike the port, {_WORDS[name]}"
    return Cause(_SLUGS[name], words, shown, sure)


def _turned(site: Site) -> Site:
    """The site with the batch in front."""
    return replace(site, reference=site.reference.swapaxes(0, 1), port=site.port.swapaxes(0, 1))


def _givens(site: Site, weights: Weights, batch_first: bool) -> Iterator[_Given]:
    """Input, initial state and lengths among what was at hand."""
    batch, length = site.port.shape[:2]
    states = [s.port for s in site.sources if s.own and _is_state(s.port, batch, weights)]
    state = None
    if states:
        state = states[0].reshape(-1, batch, states[0].shape[-1])
    for source in site.sources:
        x = source.port if batch_first or not source.own else source.port.swapaxes(0, 1)
        if x.ndim != 3 or x.shape[:2] != (batch, length):
            continue
        for lengths in (*_lengths(site, batch, length), np.full(batch, length)):
            yield _Given(x, weights, state, lengths)


def _is_state(values: Floats, batch: int, weights: Weights) -> bool:
    hidden = weights["weight_hh_l0"].shape[1] if "weight_hh_l0" in weights else 0
    return values.ndim in (2, 3) and values.shape[-1] == hidden and values.shape[-2] == batch


def _lengths(site: Site, batch: int, length: int) -> Iterator[NDArray[np.intp]]:
    for source in site.sources:
        values = source.port
        if not np.isfinite(values).all():
            continue
        whole = values.size and (values == np.round(values)).all() and values.min() >= 0
        if values.shape == (batch,) and whole and 1 <= values.max() <= length:
            yield values.astype(np.intp)
        elif values.shape == (batch, length) and np.isin(values, (0.0, 1.0)).all():
            yield values.sum(axis=1).astype(np.intp)
    # Zeros at the end of the reference's outputs tell where its sequences ended.
    rows = site.reference.any(axis=-1)
    ends = length - np.argmax(rows[:, ::-1], axis=1)
    if rows.any(axis=1).all() and ends.min() < length:
        yield ends


def _search(kind: str, given: _Given, site: Site) -> Recurrence | None:
    plain = tuple(range(_BLOCKS[kind]))
    for base in (
        Recurrence(kind, plain),  # type: ignore[arg-type]
        Recurrence(kind, plain, lengths=True),  # type: ignore[arg-type]
        Recurrence(kind, plain, lengths=True, zeroed=False),  # type: ignore[arg-type]
        Recurrence(kind, plain, relu=True),  # type: ignore[arg-type]
    ):
        if site.left_of_reference(_value(base, given)) <= site.limit:
            return base
    return None


def _changed(scheme: Recurrence, given: _Given, site: Site) -> tuple[Recurrence, float] | None:
    best: tuple[Recurrence, float] | None = None
    for other in _changes(scheme):
        left = site.left_of_port(_value(other, given))
        if left <= site.limit and (best is None or left < 0.8 * best[1]):
            best = other, left
    return best


def _changes(scheme: Recurrence) -> Iterator[Recurrence]:
    for gates in permutations(scheme.gates):
        if gates != scheme.gates:
            yield replace(scheme, gates=gates)
    for name in _SLUGS:
        if name == "forget":
            yield replace(scheme, forget=1.0)
        else:
            yield replace(scheme, **{name: not getattr(scheme, name)})  # type: ignore[arg-type]
    if scheme.lengths:
        yield replace(scheme, lengths=False, zeroed=True)


def _value(scheme: Recurrence, given: _Given) -> Floats | None:
    with np.errstate(all="ignore"):
        value = run(scheme, given.x, given.weights, given.state, given.lengths)
    return None if value is None or not math.isfinite(float(value.sum())) else value
