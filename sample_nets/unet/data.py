"""Synthetic colour images with a class for each pixel, some of them to be ignored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BATCH_SIZE = 4
CLASSES = 4
SIZE = 32
IGNORE = 255


def batch(step: int) -> dict[str, NDArray[np.float32 | np.int32]]:
    """Images (4, 3, 32, 32) float32 and masks (4, 32, 32) int32, fixed for each step.

    Classes come in blocks of 4 by 4 pixels; the image shows each class by a colour, under noise.
    A border of two pixels, where annotators disagree, is marked ``IGNORE``.
    """
    colours = np.random.default_rng(0).normal(0.0, 1.0, (CLASSES, 3))
    rng = np.random.default_rng(300 + step)
    blocks = rng.integers(0, CLASSES, (BATCH_SIZE, SIZE // 4, SIZE // 4))
    mask = np.kron(blocks, np.ones((4, 4), dtype=np.int64))
    image = colours[mask].transpose(0, 3, 1, 2) + rng.normal(0.0, 0.5, (BATCH_SIZE, 3, SIZE, SIZE))
    inside = np.zeros((SIZE, SIZE), dtype=bool)
    inside[2:-2, 2:-2] = True
    mask = np.where(inside, mask, IGNORE)
    return {"image": image.astype(np.float32), "mask": mask.astype(np.int32)}
