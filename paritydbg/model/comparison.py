"""What the comparison of one pair of events found: numbers, allowance, verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from paritydbg.model.pair import EventPair


class Verdict(str, Enum):
    """The judgement on one compared event."""

    MATCH = "MATCH"
    DIVERGED = "DIVERGED"
    INHERITED = "INHERITED"
    SUSPECT = "SUSPECT"
    SHAPE = "SHAPE"
    DTYPE = "DTYPE"
    NONFINITE = "NONFINITE"
    UNPAIRED = "UNPAIRED"
    UNTESTED = "UNTESTED"


@dataclass(frozen=True)
class Metrics:
    """Numbers on two arrays of one shape, all in float64; r is the reference, p the port.

    Elements that are not finite on either side are left out of every number but the counts. Where a
    side is a sketch, differences are estimates, and what a sketch cannot tell is nan (places: empty).

    Attributes:
        count: elements.
        max_abs: largest |p - r|; at ``max_index``, where the sides have ``reference_at`` and ``port_at``.
        relative_l2: ‖p - r‖ / ‖r‖ (inf where only r is zero, 0 where both are).
        difference_l2: ‖p - r‖.
        reference_l2, port_l2: ‖r‖, ‖p‖.
        cosine: <p, r> / (‖p‖ ‖r‖), nan where either is zero.
        ratio: <p, r> / <r, r>, the factor that leads from r to p best; nan where r is zero.
        outside: share of elements with |p - r| above the element-wise allowance used for reporting.
        nan_reference, nan_port, inf_reference, inf_port: counts.
        nonfinite_differs: elements that are not finite in the same way on both sides.
        error_l2: standard error of difference_l2; 0 where it was computed from values.
    """

    count: int
    max_abs: float
    max_index: tuple[int, ...]
    reference_at: float
    port_at: float
    relative_l2: float
    difference_l2: float
    reference_l2: float
    port_l2: float
    cosine: float
    ratio: float
    outside: float
    nan_reference: int = 0
    nan_port: int = 0
    inf_reference: int = 0
    inf_port: int = 0
    nonfinite_differs: int = 0
    error_l2: float = 0.0


@dataclass(frozen=True)
class Allowance:
    """How far two events may lie apart by rounding alone.

    Attributes:
        l2: the allowed ‖p - r‖.
        basis: measured on the reference's own runs, or modelled from dtype, sizes and depth.
        words: the same in plain words, for a person.
    """

    l2: float
    basis: Literal["measured", "modelled", "exact"]
    words: str


@dataclass(frozen=True)
class Comparison:
    """One pair of events, compared.

    Attributes:
        pair: what was compared.
        verdict: see DESIGN's words: an origin is DIVERGED, what follows from it INHERITED.
        metrics: None where shapes differ or the pair was not tested.
        allowance: None likewise.
        score: ‖p - r‖ / allowance.l2; above 1 is beyond rounding. inf for SHAPE and NONFINITE.
        reason: why, where the verdict is not told by the numbers.
    """

    pair: EventPair
    verdict: Verdict
    metrics: Metrics | None = None
    allowance: Allowance | None = None
    score: float = 0.0
    reason: str = ""
