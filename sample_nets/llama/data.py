"""Sizes of the decoder pair and its synthetic batches; NumPy only, no framework belongs here."""

from __future__ import annotations

import numpy as np

VOCABULARY = 64
HIDDEN = 48
LAYERS = 4
HEADS = 6
KEY_VALUE_HEADS = 2
HEAD_WIDTH = HIDDEN // HEADS
FEED_FORWARD = 96
LENGTH = 16
BATCH = 4
ROPE_THETA = 500000.0
RMS_EPS = 1e-5
ADAM_BETAS = (0.9, 0.95)
ADAM_EPS = 1e-5
"""Training settings of Llama 2 (Touvron et al. 2023, section 2.2)."""


def batch(step: int) -> dict[str, np.ndarray]:
    """Return the batch of a step: ids and, one word on, labels; int32 of shape (4, 16) each.

    Every row counts on from a random word by a random stride, so there is something to learn.
    """
    rng = np.random.default_rng(2000 + step)
    start = rng.integers(0, VOCABULARY, (BATCH, 1))
    stride = rng.integers(1, 6, (BATCH, 1))
    words = (start + stride * np.arange(LENGTH + 1)) % VOCABULARY
    slip = rng.random(words.shape) < 0.15
    words = np.where(slip, rng.integers(0, VOCABULARY, words.shape), words)
    return {"ids": words[:, :-1].astype(np.int32), "labels": words[:, 1:].astype(np.int32)}
