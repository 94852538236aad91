"""What a dropout left of a tensor: the share kept and the factor that the rest was scaled by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Kept values are all scaled by one factor, to rounding.
ONE_FACTOR = 1e-3


@dataclass(frozen=True)
class Mask:
    """What a tensor kept of the one it was made from.

    Attributes:
        kept: share of elements that are not zero.
        factor: by which all of those were scaled.
    """

    kept: float
    factor: float


def mask_of(made: NDArray[Any], source: NDArray[Any]) -> Mask | None:
    """The mask that leads from one tensor to another, None where none does."""
    values, source = made.astype(np.float64), source.astype(np.float64)
    used = np.abs(source) > 1e-12
    if values.shape != source.shape or not used.any():
        return None
    kept = used & (values != 0)
    share = float(kept.sum() / used.sum())
    if not 0.0 < share < 1.0:
        return None
    ratios = values[kept] / source[kept]
    factor = float(np.median(ratios))
    if factor <= 1.0 + ONE_FACTOR or float(np.abs(ratios - factor).max()) > ONE_FACTOR * factor:
        return None
    return Mask(share, factor)
