"""How far two right computations may lie apart by rounding alone, behind one protocol.

The model here knows dtypes and the size of what cancels; measured noise can take its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from paritydbg.measure.precision import unit_roundoff

# Rounding errors of sums grow like the square root of their length in the mean, and blocked kernels
# keep them smaller still (Higham, Accuracy and Stability of Numerical Algorithms, 4.2): over clean
# runs of the sample pairs one operator's own error stays within 8 unit roundoffs of its result's norm.
_ROUNDINGS = 8.0
# 16-bit kernels mostly accumulate in float32 and round once at their end.
_ROUNDINGS_16_BIT = 2.0


@dataclass(frozen=True)
class Own:
    """What an operator's own rounding may add: the norm, and the same in words."""

    l2: float
    words: str


class Noise(Protocol):
    """Gives the rounding error that an operator may add of its own."""

    @property
    def basis(self) -> Literal["measured", "modelled"]:
        """Where the numbers come from."""

    def own(self, dtypes: tuple[str, ...], size_l2: float) -> Own:
        """The allowed ‖p - r‖ where everything that came in was equal.

        Args:
            dtypes: of the result and of what it was made from, of both sides.
            size_l2: norm of the result or, where terms cancel, of what they come to without signs.
        """


@dataclass(frozen=True)
class ModelledNoise:
    """Rounding modelled from the coarsest dtype that took part and the size of the terms."""

    @property
    def basis(self) -> Literal["measured", "modelled"]:
        """See `Noise`."""
        return "modelled"

    def own(self, dtypes: tuple[str, ...], size_l2: float) -> Own:
        """See `Noise`."""
        unit = unit_roundoff(*dtypes)
        times = _ROUNDINGS_16_BIT if unit > 2.0**-20 else _ROUNDINGS
        coarsest = max(dtypes, key=unit_roundoff, default="")
        return Own(times * unit * size_l2, f"{times:g} {coarsest} roundings of its terms")
