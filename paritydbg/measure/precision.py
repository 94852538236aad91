"""What a dtype can resolve: unit roundoff and element-wise tolerances, one table for the project."""

from __future__ import annotations

from dataclasses import dataclass

# Half the spacing of floats at 1, 2^-p for p bits of precision: IEEE 754-2019, and for bfloat16 its
# 8 bits of precision.
UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "complex128": 2.0**-53,
    "float32": 2.0**-24,
    "complex64": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}


@dataclass(frozen=True)
class Tolerance:
    """Element-wise closeness: |p - r| <= absolute + relative · |r|."""

    relative: float
    absolute: float


# As torch.testing.assert_close has them.
_TOLERANCES = {
    "float64": Tolerance(1e-7, 1e-7),
    "complex128": Tolerance(1e-7, 1e-7),
    "float32": Tolerance(1.3e-6, 1e-5),
    "complex64": Tolerance(1.3e-6, 1e-5),
    "float16": Tolerance(1e-3, 1e-5),
    "bfloat16": Tolerance(1.6e-2, 1e-5),
}
_EXACT = Tolerance(0.0, 0.0)
# Two chains of 16-bit operators agree to some roundings: gradients of clean float16 runs of the sample
# pairs lie within five.
_ROUNDINGS = 8.0


def unit_roundoff(*dtypes: str) -> float:
    """The coarsest unit roundoff among the dtypes, 0 where all are whole numbers or flags."""
    return max((UNIT_ROUNDOFF.get(dtype, 0.0) for dtype in dtypes), default=0.0)


def no_finer(bound: float, *dtypes: str) -> float:
    """A bound on a relative difference, raised to what the coarsest dtype's rounding leaves anyway."""
    return max(bound, _ROUNDINGS * unit_roundoff(*dtypes))


def tolerance(*dtypes: str) -> Tolerance:
    """The widest element-wise tolerance among the dtypes."""
    found = [_TOLERANCES.get(dtype, _EXACT) for dtype in dtypes]
    return max(found, key=lambda one: one.relative, default=_EXACT)
