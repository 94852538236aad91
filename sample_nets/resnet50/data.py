"""Synthetic colour images for ResNet-50, already normalised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BATCH_SIZE = 8
CLASSES = 10


def batch(step: int) -> dict[str, NDArray[np.float32 | np.int32]]:
    """Images (8, 3, 48, 48) float32 and labels (8,) int32, fixed for each step."""
    patterns = np.random.default_rng(0).normal(0.0, 1.0, (CLASSES, 3, 6, 6))
    rng = np.random.default_rng(200 + step)
    label = rng.integers(0, CLASSES, BATCH_SIZE)
    coarse = np.kron(patterns[label], np.ones((8, 8)))
    image = coarse + rng.normal(0.0, 0.5, coarse.shape)
    return {"image": image.astype(np.float32), "label": label.astype(np.int32)}
