"""From an alignment to a forced replay: which reference tensor stands in for which of the port's."""

from __future__ import annotations

from collections.abc import Iterable

from paritydbg.model.event import EventKey, Phase, Role
from paritydbg.model.forcing import ForcingPlan, Given
from paritydbg.model.pair import EventPair

_FLOWING = frozenset({Role.INPUT, Role.OUTPUT, Role.GRAD_INPUT, Role.GRAD_OUTPUT})
_HELD = frozenset({Role.PARAMETER, Role.BUFFER})


def forcing_plan(
    pairs: Iterable[EventPair], reference: str, own_gradients: bool = False
) -> ForcingPlan:
    """The plan that feeds a port with a reference.

    Args:
        pairs: the alignment of the reference's run with a free run of the port.
        reference: path of the reference's dump.
        own_gradients: whether the reference's gradients of inputs are each layer's own share, as a
            forced replay records them, and not the sum over all users of a tensor.
    """
    given: dict[EventKey, Given] = {}
    for pair in pairs:
        role, phase = pair.first.key.role, pair.first.key.phase
        held = role in _HELD and phase is Phase.FORWARD
        if not held and (role not in _FLOWING or (role is Role.GRAD_INPUT and not own_gradients)):
            continue
        orders = tuple(event.order for event in pair.reference)
        for position, event in enumerate(pair.port):
            given[event.key] = Given(orders, pair.transform, position)
    return ForcingPlan(reference, given)
