"""Two changes of a parameter, of which a side is known by sketches alone; `updates` judges them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paritydbg.measure.precision import unit_roundoff
from paritydbg.measure.sketch import estimated_changes
from paritydbg.model.comparison import Metrics, Verdict
from paritydbg.model.event import Event
from paritydbg.model.pair import EventPair
from paritydbg.model.source import EventSource
from paritydbg.verdict.sketched import CANNOT_TELL, full_capture, paired_sketches


@dataclass(frozen=True)
class Changes:
    """What sketches tell of two changes.

    Attributes:
        metrics: of the changes, estimated.
        rounding: what rounding of the values that were subtracted may add, as a norm.
    """

    metrics: Metrics
    rounding: float


def sketched_changes(
    before: EventPair, after: EventPair, reference: EventSource, port: EventSource
) -> Changes | None:
    """The changes between two pairs of one parameter; None where their layouts cannot be joined."""
    old = paired_sketches(before, reference, port)
    new = paired_sketches(after, reference, port)
    if isinstance(old, Verdict) or isinstance(new, Verdict):
        return None
    unit = unit_roundoff(*(event.dtype for event in (*after.reference, *after.port)))
    rounding = 4.0 * unit * (new[0].l2 + old[0].l2)
    return Changes(estimated_changes((old[0], new[0]), (old[1], new[1])), rounding)


def single_elements(event: Event) -> str:
    """Why a sketch cannot tell whether more than elements of unsure gradient differs."""
    return (
        f"{CANNOT_TELL} whether more differs than elements whose gradient is not sure; to know, "
        f"{full_capture(event)}"
    )


def unsure_share(relative: float) -> float:
    """How far elements of unsure gradient may carry an update that divides by a gradient's own size.

    Of normally distributed gradients g (deviation σ) that were rounded by δ = relative·σ, a share moves
    by the rounding's sign: with a relative change of min(2, δ/|g|), its mean square is
    2φ(0)·(∫₀^{δ/2} 4 + ∫_{δ/2}^∞ δ²/g²) = 2φ(0)·4δ, in units of σ; the root of it is returned.

    Args:
        relative: ‖Δg‖ / ‖g‖.
    """
    at_zero = 1.0 / math.sqrt(2.0 * math.pi)
    return math.sqrt(8.0 * at_zero * min(1.0, relative))
