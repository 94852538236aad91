"""Sizes of the encoder pair and its synthetic batches; NumPy only, no framework belongs here."""

from __future__ import annotations

import numpy as np

VOCABULARY = 60
HIDDEN = 48
HEADS = 4
FEED_FORWARD = 96
LAYERS = 12
LENGTH = 16
BATCH = 4
PADDING_ID = 0
MASK_ID = 1
IGNORED = -100
"""Label of a position that the masked-word loss leaves out."""


def batch(step: int) -> dict[str, np.ndarray]:
    """Return the batch of a step: two sentences a row, padded, some words masked out.

    Shapes are (4, 16) for ids, segments, mask (1 for a word, 0 for padding) and labels (the
    masked-out word, -100 elsewhere), and (4,) for follows. All are int32 but mask, a float32.
    """
    rng = np.random.default_rng(1000 + step)
    lengths = rng.integers(9, LENGTH, BATCH)
    lengths[0] = LENGTH
    position = np.arange(LENGTH)
    is_word = position[None, :] < lengths[:, None]
    words = rng.integers(2, VOCABULARY, (BATCH, LENGTH))
    hidden = (rng.random((BATCH, LENGTH)) < 0.25) & is_word
    hidden[:, 3] = True
    ids = np.where(is_word, np.where(hidden, MASK_ID, words), PADDING_ID)
    segments = (position[None, :] >= lengths[:, None] // 2) & is_word
    return {
        "ids": ids.astype(np.int32),
        "segments": segments.astype(np.int32),
        "mask": is_word.astype(np.float32),
        "labels": np.where(hidden, words, IGNORED).astype(np.int32),
        "follows": rng.integers(0, 2, BATCH).astype(np.int32),
    }
