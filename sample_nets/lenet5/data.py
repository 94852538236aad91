"""Synthetic grey images for LeNet-5, in raw pixel values; the nets' scripts normalise them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BATCH_SIZE = 8
CLASSES = 10
MEAN = 33.0
STD = 79.0


def batch(step: int) -> dict[str, NDArray[np.float32 | np.int32]]:
    """Images (8, 1, 28, 28) float32 in 0 to 255 and labels (8,) int32, fixed for each step."""
    strokes = np.random.default_rng(0).random((CLASSES, 1, 28, 28)) > 0.8
    rng = np.random.default_rng(100 + step)
    label = rng.integers(0, CLASSES, BATCH_SIZE)
    noise = rng.normal(0.0, 20.0, (BATCH_SIZE, 1, 28, 28))
    image = np.clip(strokes[label] * 200.0 + noise, 0.0, 255.0)
    return {"image": image.astype(np.float32), "label": label.astype(np.int32)}
