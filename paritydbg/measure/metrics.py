"""Two arrays of one shape to numbers, in float64, block by block; what the numbers mean is elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.measure.precision import Tolerance
from paritydbg.model.comparison import Metrics

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Elements per block: three float64 buffers of 256 KB stay in a core's second-level cache.
_BLOCK = 1 << 15


@dataclass
class _Sums:
    """Running sums over blocks."""

    difference: float = 0.0
    reference: float = 0.0
    port: float = 0.0
    product: float = 0.0
    outside: int = 0
    finite: int = 0
    max_abs: float = -1.0
    max_at: int = 0
    nan_reference: int = 0
    nan_port: int = 0
    inf_reference: int = 0
    inf_port: int = 0
    nonfinite_differs: int = 0


def measure(reference: Array, port: Array, within: Tolerance) -> Metrics:
    """The metrics of two arrays of one shape; complex numbers count as pairs of real ones.

    Args:
        reference, port: any numeric dtype or bool.
        within: the element-wise tolerance that ``outside`` counts by.

    Raises:
        ValueError: the shapes differ.
    """
    if reference.shape != port.shape:
        raise ValueError(f"shapes differ: {reference.shape} against {port.shape}")
    shape = reference.shape
    if reference.dtype.kind == "c" or port.dtype.kind == "c":
        reference, port = _as_real(reference), _as_real(port)
        shape = reference.shape
    left, right = _flat(reference), _flat(port)
    sums = _Sums()
    for start in range(0, left.size, _BLOCK):
        _add(sums, left[start : start + _BLOCK], right[start : start + _BLOCK], start, within)
    return _metrics(sums, left, right, shape)


def difference_norm(reference: Array, port: Array) -> float:
    """‖p - r‖ in float64, for two arrays of one shape with finite values."""
    total = 0.0
    left, right = _flat(reference), _flat(port)
    for start in range(0, left.size, _BLOCK):
        block = right[start : start + _BLOCK].astype(np.float64)
        block -= left[start : start + _BLOCK]
        total += float(block @ block)
    return math.sqrt(total)


def norm(array: Array) -> float:
    """‖a‖ in float64 over its finite elements."""
    total = 0.0
    flat = _flat(array)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(np.float64)
        square = float(block @ block)
        if not math.isfinite(square):
            block = block[np.isfinite(block)]
            square = float(block @ block)
        total += square
    return math.sqrt(total)


def _add(sums: _Sums, left: Array, right: Array, start: int, within: Tolerance) -> None:
    a = left.astype(np.float64)
    b = right.astype(np.float64)
    # Inf - Inf is NaN, which is what tells that something is not finite.
    with np.errstate(invalid="ignore"):
        difference = b - a
        square = float(difference @ difference)
    if math.isfinite(square):
        _add_finite(sums, a, b, difference, square, start, within)
        return
    finite = np.isfinite(a) & np.isfinite(b)
    _count_nonfinite(sums, a, b)
    a, b = np.where(finite, a, 0.0), np.where(finite, b, 0.0)
    difference = b - a
    square = float(difference @ difference)
    _add_finite(sums, a, b, difference, square, start, within)
    sums.finite -= int(finite.size - finite.sum())


def _add_finite(
    sums: _Sums,
    a: Floats,
    b: Floats,
    difference: Floats,
    square: float,
    start: int,
    within: Tolerance,
) -> None:
    sums.finite += a.size
    sums.reference += float(a @ a)
    sums.port += float(b @ b)
    if square == 0.0:
        sums.product += float(a @ a)
        if sums.max_abs < 0.0:
            sums.max_abs, sums.max_at = 0.0, start
        return
    sums.difference += square
    sums.product += float(a @ b)
    np.abs(difference, out=difference)
    worst = int(difference.argmax())
    if difference[worst] > sums.max_abs:
        sums.max_abs, sums.max_at = float(difference[worst]), start + worst
    np.abs(a, out=a)
    a *= within.relative
    a += within.absolute
    sums.outside += int(np.count_nonzero(difference > a))


def _count_nonfinite(sums: _Sums, a: Floats, b: Floats) -> None:
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    inf_a, inf_b = np.isinf(a), np.isinf(b)
    sums.nan_reference += int(nan_a.sum())
    sums.nan_port += int(nan_b.sum())
    sums.inf_reference += int(inf_a.sum())
    sums.inf_port += int(inf_b.sum())
    same = (nan_a & nan_b) | (inf_a & inf_b & (a == b))
    lost = nan_a | nan_b | inf_a | inf_b
    sums.nonfinite_differs += int((lost & ~same).sum())


def _metrics(sums: _Sums, left: Array, right: Array, shape: tuple[int, ...]) -> Metrics:
    reference, port = math.sqrt(sums.reference), math.sqrt(sums.port)
    difference = math.sqrt(sums.difference)
    if reference:
        relative = difference / reference
    else:
        relative = math.inf if difference else 0.0
    at = np.unravel_index(sums.max_at, shape) if left.size else ()
    return Metrics(
        count=left.size,
        max_abs=max(sums.max_abs, 0.0),
        max_index=tuple(int(place) for place in at),
        reference_at=float(left[sums.max_at]) if left.size else math.nan,
        port_at=float(right[sums.max_at]) if left.size else math.nan,
        relative_l2=relative,
        difference_l2=difference,
        reference_l2=reference,
        port_l2=port,
        # Rounding may carry a cosine past 1.
        cosine=max(-1.0, min(1.0, sums.product / (reference * port)))
        if reference and port
        else math.nan,
        ratio=sums.product / sums.reference if sums.reference else math.nan,
        outside=sums.outside / sums.finite if sums.finite else 0.0,
        nan_reference=sums.nan_reference,
        nan_port=sums.nan_port,
        inf_reference=sums.inf_reference,
        inf_port=sums.inf_port,
        nonfinite_differs=sums.nonfinite_differs,
    )


def _flat(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1)


def _as_real(array: Array) -> Array:
    """Complex numbers as a further axis of (real, imaginary)."""
    wide = np.ascontiguousarray(array.astype(np.complex128))
    return wide.view(np.float64).reshape(*array.shape, 2)
