"""Sizes of the recurrent pair and its synthetic batches; NumPy only, no framework belongs here."""

from __future__ import annotations

import numpy as np

VOCABULARY = 40
EMBEDDING = 16
LSTM_HIDDEN = 12
GRU_HIDDEN = 16
HEAD = 20
CLASSES = 5
LENGTH = 12
BATCH = 6
PADDING_ID = 0
"""Index of padding and of words out of the vocabulary; its embedding stays zero."""


def batch(step: int) -> dict[str, np.ndarray]:
    """Return the batch of a step: padded word ids (6, 12), lengths (6,), labels (6,), all int32.

    The label is a function of the words. A few words within a sentence are out of the vocabulary.
    """
    rng = np.random.default_rng(3000 + step)
    lengths = rng.integers(3, LENGTH, BATCH)
    lengths[0] = LENGTH
    words = rng.integers(1, VOCABULARY, (BATCH, LENGTH))
    words[rng.random(words.shape) < 0.15] = PADDING_ID
    words[:, 1] = PADDING_ID
    words = np.where(np.arange(LENGTH) < lengths[:, None], words, PADDING_ID)
    labels = (words.sum(axis=1) // lengths) % CLASSES
    return {
        "ids": words.astype(np.int32),
        "lengths": lengths.astype(np.int32),
        "labels": labels.astype(np.int32),
    }
