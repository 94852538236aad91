"""What the walk told, as one value: the gathering of findings starts from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paritydbg.measure.precision import no_finer
from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Event
from paritydbg.model.source import EventSource
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.gradients import OneSided
from paritydbg.verdict.judge import MATTERS, Judged
from paritydbg.verdict.updates import Update


@dataclass(frozen=True)
class Told:
    """What the walk told.

    Attributes:
        judged: every event of the reference, in the order of the walk.
        free: the same as the free run alone has it; whether a difference re-converges is told from it.
        updates: of parameters, by the event after the step.
        flow: what went into what.
        one_sided: gradients that only one side has.
        reference: for the values of single tensors.
        reordered: whether a pair holds the same values in another order.
    """

    judged: tuple[Judged, ...]
    free: tuple[Judged, ...]
    updates: Mapping[Event, Update]
    flow: Flow
    one_sided: OneSided
    reference: EventSource
    reordered: Callable[[Comparison], bool]

    def agrees(self, event: Event) -> bool:
        """Whether an event was compared and is the same on both sides as far as it matters."""
        for one in self.judged:
            if one.event == event and one.comparison is not None:
                return agrees_within(one.comparison, MATTERS)
        return False


def agrees_within(comparison: Comparison, within: float) -> bool:
    """Whether a comparison's relative difference is no larger, and all of it finite alike.

    Args:
        within: the bound, which 16-bit dtypes raise to what they can resolve.
    """
    metrics = comparison.metrics
    if metrics is None or metrics.nonfinite_differs:
        return False
    return metrics.relative_l2 <= no_finer(within, *dtypes_of(comparison))


def dtypes_of(comparison: Comparison) -> tuple[str, ...]:
    """The dtypes of both sides."""
    return tuple(e.dtype for e in (*comparison.pair.reference, *comparison.pair.port))
