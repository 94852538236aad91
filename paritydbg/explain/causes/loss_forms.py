"""Losses in float64, by kind, reduction and what they leave out, from outputs and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.context import Floats

Labels = NDArray[Any]

_SMOOTHINGS = (0.0, 0.1, 0.05, 0.2)
_BETAS = (1.0, 0.5, 0.1, 1 / 9)


@dataclass(frozen=True)
class LossForm:
    """One way to make a loss of these tensors.

    Attributes:
        words: its name.
        kind: cross-entropy, squared error …
        settings: reduction, smoothing, what is left out.
        value: the number.
        simplicity: how usual it is; smaller comes first.
    """

    words: str
    kind: str
    value: float
    settings: Mapping[str, str | float] = field(default_factory=dict)
    simplicity: int = 0


def loss_forms(output: Floats, target: Floats, whole: bool) -> Iterator[LossForm]:
    """Everything that one output and one target may be made into.

    Args:
        whole: whether the target holds class numbers.
    """
    with np.errstate(all="ignore"):
        if whole:
            yield from _classes(output, target)
        if output.shape == target.shape:
            yield from _pairs(output, target)
        elif output.size == target.size:
            yield from _pairs(output.reshape(target.shape), target)


def _classes(output: Floats, target: Floats) -> Iterator[LossForm]:
    """Cross-entropies of logits whose classes lie along the last axis or axis 1."""
    for logits, labels, words in _laid_out(output, target):
        for read, scores in _readings(logits):
            for ignored in _ignored(labels, scores.shape[1]):
                kept = labels != ignored if ignored is not None else np.ones(labels.size, bool)
                inside = (labels >= 0) & (labels < scores.shape[1])
                if not kept.any() or (kept & ~inside).any():
                    continue
                for smoothing in _SMOOTHINGS:
                    every = _smoothed(scores, labels, inside, smoothing)
                    yield from _reduced_classes(
                        every, kept, output.shape[0], ignored, smoothing, words + read
                    )


def _laid_out(output: Floats, target: Floats) -> Iterator[tuple[Floats, Labels, str]]:
    """(rows of logits, labels) for every layout that fits."""
    labels = target.astype(np.int64)
    if output.ndim == target.ndim + 1 and output.shape[:-1] == target.shape:
        yield output.reshape(-1, output.shape[-1]), labels.reshape(-1), ""
        if target.ndim == 2 and target.shape[1] > 1:
            shifted = output[:, :-1].reshape(-1, output.shape[-1])
            yield shifted, labels[:, 1:].reshape(-1), " of the next token"
    if output.ndim == target.ndim + 1 and output.ndim > 2:
        moved = np.moveaxis(output, 1, -1)
        if moved.shape[:-1] == target.shape:
            yield moved.reshape(-1, output.shape[1]), labels.reshape(-1), ""
    if output.ndim == 2 and output.shape[0] == target.size and target.ndim != 1:
        yield output, labels.reshape(-1), ""


def _readings(logits: Floats) -> Iterator[tuple[str, Floats]]:
    """The scores as log-probabilities: of logits, of probabilities taken for logits, as they are."""
    log = logits - logits.max(axis=1, keepdims=True)
    log = log - np.log(np.exp(log).sum(axis=1, keepdims=True))
    yield "", log
    grown = np.exp(log)
    again = grown - grown.max(axis=1, keepdims=True)
    yield " of softmax(logits)", again - np.log(np.exp(again).sum(axis=1, keepdims=True))
    sums = logits.sum(axis=1)
    if np.allclose(np.exp(logits).sum(axis=1), 1.0, atol=1e-3):
        yield " of log-probabilities as they are", logits
    elif np.allclose(sums, 1.0, atol=1e-3) and (logits >= 0).all():
        yield " of the logarithm of probabilities", np.log(np.maximum(logits, 1e-30))


def _ignored(labels: Labels, classes: int) -> Iterator[int | None]:
    yield None
    for value in (-100, -1, 255, 0):
        if (labels == value).any():
            yield value
    for value in np.unique(labels[(labels < 0) | (labels >= classes)]).tolist():
        if value not in (-100, -1, 255):
            yield int(value)


def _smoothed(
    scores: Floats,
    labels: Labels,
    inside: Labels,
    smoothing: float,
) -> Floats:
    safe = np.where(inside, labels, 0)
    hit = -scores[np.arange(len(safe)), safe]
    if not smoothing:
        return np.asarray(hit)
    return np.asarray((1 - smoothing) * hit - smoothing * scores.mean(axis=1))


def _reduced_classes(
    every: Floats,
    kept: Labels,
    batch: int,
    ignored: int | None,
    smoothing: float,
    words: str,
) -> Iterator[LossForm]:
    total = float(every[kept].sum())
    count = int(kept.sum())
    note = f", label {ignored} left out" if ignored is not None else ""
    note += f", label smoothing {smoothing:g}" if smoothing else ""
    settings: dict[str, str | float] = {
        "ignored": "none" if ignored is None else float(ignored),
        "smoothing": smoothing,
        "reading": words,
    }
    ways = [("mean", count, "the mean over what counts")]
    ways += [("sum", 1, "the sum")]
    if count != len(kept):
        ways += [("mean-all", len(kept), "the sum divided by all positions")]
    if batch not in (count, len(kept)):
        ways += [("batch", batch, "the sum divided by the batch")]
    if len(every) > batch and len(every) % batch == 0:
        rows = np.where(kept, every, 0.0).reshape(batch, -1)
        counts = kept.reshape(batch, -1).sum(axis=1)
        if (counts > 0).all() and len(set(counts.tolist())) > 1:
            mean = float((rows.sum(axis=1) / counts).mean())
            yield LossForm(
                f"cross-entropy{words}, the mean of each sample's mean{note}",
                "cross-entropy",
                mean,
                {**settings, "reduction": "mean-of-means"},
                3,
            )
    for name, divisor, told in ways:
        yield LossForm(
            f"cross-entropy{words}, {told}{note}",
            "cross-entropy",
            total / divisor,
            {**settings, "reduction": name},
            (name != "mean") + 2 * bool(smoothing) + bool(words) + (ignored in (0, 255)),
        )


def _pairs(output: Floats, target: Floats) -> Iterator[LossForm]:
    """Losses of two tensors of one shape."""
    d = output - target
    each: list[tuple[str, str, Floats, float]] = [
        ("squared error", "squared", d * d, 0),
        ("half the squared error", "half-squared", 0.5 * d * d, 1),
        ("absolute error", "absolute", np.abs(d), 0),
    ]
    for beta in _BETAS:
        small = np.abs(d) < beta
        smooth = np.where(small, 0.5 * d * d / beta, np.abs(d) - 0.5 * beta)
        each.append((f"smooth L1 of beta {beta:.3g}", "smooth-l1", smooth, beta != 1.0))
        each.append((f"Huber of delta {beta:.3g}", "huber", smooth * beta, 1 + (beta != 1.0)))
    if ((target >= 0) & (target <= 1)).all():
        stable = np.maximum(output, 0) - output * target + np.log1p(np.exp(-np.abs(output)))
        each.append(("binary cross-entropy of logits", "bce-logits", stable, 0))
        if ((output >= 0) & (output <= 1)).all():
            p = np.clip(output, 1e-12, 1 - 1e-12)
            plain = -(target * np.log(p) + (1 - target) * np.log1p(-p))
            each.append(("binary cross-entropy of probabilities", "bce", plain, 0))
        log = np.where(target > 0, np.log(np.maximum(target, 1e-300)), 0.0)
        each.append(("KL divergence", "kl", target * (log - output), 0))
        if output.ndim > 1:
            shifted = output - output.max(axis=-1, keepdims=True)
            shifted = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
            each.append(("KL divergence of logits", "kl", target * (log - shifted), 1))
            each.append(("cross-entropy against probabilities", "soft-ce", -target * shifted, 1))
    each.append(("KL divergence of log-targets", "kl", np.exp(target) * (target - output), 2))
    for words, kind, values, extra in each:
        yield from _reduced(words, kind, values, int(extra))


def _reduced(words: str, kind: str, values: Floats, extra: int) -> Iterator[LossForm]:
    total = float(values.sum())
    ways = [("mean", values.size), ("sum", 1)]
    if values.ndim > 1 and values.shape[0] not in (1, values.size):
        ways.append(("batchmean", values.shape[0]))
        rows = values.size // values.shape[-1]
        if rows not in (values.shape[0], 1):
            ways.append(("rows", rows))
    told = {
        "mean": "mean over all elements",
        "sum": "sum",
        "batchmean": "sum divided by the batch",
        "rows": "sum divided by the number of rows",
    }
    for name, divisor in ways:
        yield LossForm(
            f"{words}, {told[name]}",
            kind,
            total / divisor,
            {"reduction": name, "variant": words},
            extra + (name != "mean"),
        )
