"""How far two right computations may lie apart by rounding alone, behind one protocol.

The model here knows dtypes and the size of what cancels; measured noise can take its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from paritydbg.measure.precision import unit_roundoff
from paritydbg.model.event import EventKey
from paritydbg.model.record import NoiseRecord

# Rounding errors of sums grow like the square root of their length in the mean, and blocked kernels
# keep them smaller still (Higham, Accuracy and Stability of Numerical Algorithms, 4.2): over clean
# runs of the sample pairs one operator's own error stays within 8 unit roundoffs of its result's norm.
_ROUNDINGS = 8.0
# 16-bit kernels mostly accumulate in float32 and round once at their end.
_ROUNDINGS_16_BIT = 2.0
# With the factor of four that a judgement adds, twenty times the measured noise.
_TIMES = 5.0


@dataclass(frozen=True)
class Own:
    """What an operator's own rounding may add.

    Attributes:
        l2: as a norm.
        times, of: the same in words: how many times what.
        basis: how it is known.
    """

    l2: float
    times: float
    of: str
    basis: Literal["measured", "modelled"] = "modelled"

    @property
    def words(self) -> str:
        """The allowance for a person: ``8 float32 roundings of its terms``."""
        return f"{self.times:g} {self.of}"

    def allowing(self, times: float) -> Own:
        """As many times as much, in numbers and in words."""
        return replace(self, l2=times * self.l2, times=times * self.times)


class Noise(Protocol):
    """Gives the rounding error that an operator may add of its own."""

    def own(
        self, dtypes: tuple[str, ...], size_l2: float, key: EventKey | None = None, l2: float = 0.0
    ) -> Own:
        """The allowed ‖p - r‖ where everything that came in was equal.

        Args:
            dtypes: of the result and of what it was made from, of both sides.
            size_l2: norm of the result or, where terms cancel, of what they come to without signs.
            key: the reference's event, for noise that was measured on it.
            l2: norm of the result itself, which is all that counts beside measured noise.
        """


@dataclass(frozen=True)
class ModelledNoise:
    """Rounding modelled from the coarsest dtype that took part and the size of the terms."""

    def own(
        self, dtypes: tuple[str, ...], size_l2: float, key: EventKey | None = None, l2: float = 0.0
    ) -> Own:
        """See `Noise`."""
        unit = unit_roundoff(*dtypes)
        times = _ROUNDINGS_16_BIT if unit > 2.0**-20 else _ROUNDINGS
        coarsest = max(dtypes, key=unit_roundoff, default="")
        return Own(times * unit * size_l2, times, f"{coarsest} roundings of its terms")


class MeasuredNoise:
    """Rounding as the reference's own perturbed replays showed it; modelled where none was measured.

    Args:
        records: of a replay of the reference by itself.
    """

    def __init__(self, records: Iterable[NoiseRecord]) -> None:
        self._known = {record.key: record for record in records}
        self._model = ModelledNoise()

    def own(
        self, dtypes: tuple[str, ...], size_l2: float, key: EventKey | None = None, l2: float = 0.0
    ) -> Own:
        """See `Noise`."""
        record = None if key is None else self._known.get(key)
        if record is None:
            return self._model.own(dtypes, size_l2)
        # Another kernel rounds as often as this one, whatever a moved last bit does.
        modelled = self._model.own(dtypes, l2)
        measured = _TIMES * max(record.spread or 0.0, record.exact or 0.0)
        if measured <= modelled.l2:
            return modelled
        what = "its error against float64" if (record.exact or 0) > (record.spread or 0) else ""
        spread = what or f"the spread of {record.runs} runs moved in their last bit"
        return Own(measured, _TIMES, f"times {spread}", "measured")
