"""Gradients that only one side has: which of them mean that something was cut or left in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paritydbg.measure.metrics import norm
from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Event, EventKey, Role
from paritydbg.model.pair import Alignment, Unpaired
from paritydbg.model.source import EventSource

_GRADIENTS = (Role.GRAD_OUTPUT, Role.GRAD_INPUT)
_COUNTERPART = {Role.GRAD_OUTPUT: Role.OUTPUT, Role.GRAD_INPUT: Role.INPUT}


@dataclass(frozen=True)
class OneSided:
    """Gradients that mean something though the other side has none.

    Attributes:
        missing: the reference's tensors whose gradient never arrived in the port.
        lost: the reference's parameter gradients that are not zero, and absent in the port.
        extra: the port's parameter gradients that are not zero, and absent in the reference, with
            the reference's parameter.
    """

    missing: frozenset[Event]
    lost: frozenset[Event]
    extra: tuple[tuple[Event, str], ...]


def one_sided(
    alignment: Alignment,
    comparisons: Iterable[Comparison],
    reference: EventSource,
    port: EventSource,
) -> OneSided:
    """Sorts the unpaired gradients.

    A layer's missing gradient is believed only where some parameter's gradient is lost or zero as
    well: hooks that cannot fire leave gaps of their own.
    """
    found = list(comparisons)
    partners = {name: pair.port[0] for pair in alignment.parameters for name in pair.reference}
    origins = {name: pair.reference[0] for pair in alignment.parameters for name in pair.port}
    steps = {c.pair.first.key.step for c in found if c.pair.first.key.role is Role.GRAD}
    alone = list(alignment.unpaired)
    applied: dict[int, set[str]] = {}
    for event in reference.events:
        if event.key.role is Role.GRAD_APPLIED:
            applied.setdefault(event.key.step, set()).add(event.key.name)

    def used(event: Event) -> bool:
        """Whether an optimizer wanted it: torch makes gradients for all leaves, asked for or not."""
        of_step = applied.get(event.key.step)
        return of_step is None or event.key.name in of_step

    lost = frozenset(
        one.event
        for one in alone
        if one.side == "reference"
        and one.event.key.role is Role.GRAD
        and one.event.key.name in partners
        and one.event.key.step in steps
        and used(one.event)
        and _size(one.event, reference) > 0.0
    )
    extra = tuple(
        (one.event, origins[one.event.key.name])
        for one in alone
        if one.side == "port"
        and one.event.key.role is Role.GRAD
        and one.event.key.name in origins
        and one.event.key.step in steps
        and _size(one.event, port) > 0.0
    )
    starved = {event.key.step for event in lost} | {
        c.pair.first.key.step for c in found if _zeroed(c)
    }
    unhooked = {layer.name for layer in port.run.layers if layer.unhooked}
    unhooked = {pair.reference for pair in alignment.layers if pair.port in unhooked}
    forward = {_tensor(c.pair.first.key) for c in found}
    missing = frozenset(
        one.event
        for one in alone
        if _may_be_missing(one, starved, unhooked)
        and _tensor(one.event.key, _COUNTERPART) in forward
        and _size(one.event, reference) > 0.0
    )
    return OneSided(missing, lost, extra)


def _size(event: Event, source: EventSource) -> float:
    """‖g‖ over its finite elements; a sketch has it exactly."""
    return norm(source.load(event)) if event.has_values else source.load_sketch(event).l2


def _may_be_missing(one: Unpaired, starved: set[int], unhooked: set[str]) -> bool:
    key = one.event.key
    return (
        one.side == "reference"
        and key.role in _GRADIENTS
        and key.step in starved
        and key.name not in unhooked
    )


def _zeroed(comparison: Comparison) -> bool:
    """Whether a parameter's gradient is zero in the port alone."""
    metrics = comparison.metrics
    return (
        comparison.pair.first.key.role is Role.GRAD
        and metrics is not None
        and metrics.port_l2 == 0.0
        and metrics.reference_l2 > 0.0
    )


def _tensor(
    key: EventKey, roles: dict[Role, Role] | None = None
) -> tuple[int, int, str, int, Role, str]:
    role = roles.get(key.role, key.role) if roles else key.role
    return key.step, key.rank, key.name, key.call, role, key.slot
