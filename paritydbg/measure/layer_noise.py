"""How far two kernels of one layer may lie apart on the same tensors, by rounding alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# A dot product over 1,000 terms in the worst case (1,000 · 2^-24); for shorter types, which are summed in
# float32, a few roundings of the result.
_ROUNDING = {"float64": 1e-9, "float16": 8e-3, "bfloat16": 6e-2}
_SINGLE = 6e-5
# Backward, sums run over the batch as well: 10^5 terms lie within sqrt(10^5) · 2^-24 of each other, five
# times that is allowed.
_GRADIENT = 1e-4
# Random errors of float32 products, five times their size: 5 · 2^-24.
_PER_TERM = 3e-7


def rounding(dtypes: Iterable[str]) -> float:
    """How far (‖x - r‖ / ‖r‖) two kernels on the same inputs may lie apart.

    Args:
        dtypes: of the tensors, by their framework-free names; the shortest decides.
    """
    return max([_SINGLE, *(_ROUNDING.get(dtype, 0.0) for dtype in dtypes)])


def gradient_rounding(
    gradient: Array, grad_outputs: Iterable[Array], inputs: Iterable[Array]
) -> float:
    """The same for a gradient, more where its terms cancel.

    A weight's gradient sums products of what comes back (g) and what went in (x), a bias's the first
    alone; rounding of all terms is 2^-24 · ‖g‖ · max(‖x‖, √n), however small the sum. A gradient that is
    zero in theory may so lie at any distance.
    """
    norm = _norm([gradient])
    coming = list(grad_outputs)
    count = sum(array.size for array in coming)
    terms = _norm(coming) * max(_norm(inputs), count**0.5)
    cancelled = _PER_TERM * terms / norm if norm else np.inf
    return max(_GRADIENT, rounding([str(gradient.dtype)]), float(cancelled))


def _norm(arrays: Iterable[Array]) -> float:
    """The norm of all finite floats together."""
    total = 0.0
    for array in arrays:
        if array.dtype.kind == "f":
            flat = array.astype(np.float64).reshape(-1)
            total += float(np.sum(np.square(flat[np.isfinite(flat)])))
    return float(np.sqrt(total))
