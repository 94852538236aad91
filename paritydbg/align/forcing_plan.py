"""From an alignment to a forced replay: which reference tensor stands in for which of the port's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paritydbg.errors import UsageError
from paritydbg.model.event import EventKey, Phase, Role
from paritydbg.model.forcing import ForcingPlan, Given
from paritydbg.model.pair import EventPair
from paritydbg.model.source import EventSource

_HELD = frozenset({Role.PARAMETER, Role.BUFFER})
_LAYERS = frozenset({Role.INPUT, Role.OUTPUT})
# Given on their way from autograd to the optimizer, so that clipping and the update are judged alone.
_GRADIENTS = frozenset({Role.GRAD, Role.GRAD_APPLIED})


def forcing_plan(
    pairs: Iterable[EventPair], reference: EventSource, own_gradients: bool = False
) -> ForcingPlan:
    """The plan that feeds a port with a reference.

    Args:
        pairs: the alignment of the reference's run with a free run of the port.
        reference: the run that the values come from; its gradients are given wherever the tensors
            are paired, also where the port's free run had none.
        own_gradients: whether the reference's gradients of inputs are each layer's own share, as a
            forced replay records them, and not the sum over all users of a tensor.

    Raises:
        UsageError: the reference holds sketches, which cannot be given to a layer.
    """
    if not all(event.has_values for event in reference.events):
        raise UsageError(
            f"{reference.path} holds sketches, and a forced replay needs the values: record the "
            "reference without --sketch"
        )
    known = {event.key: event.order for event in reference.events}
    given: dict[EventKey, Given] = {}
    for pair in pairs:
        role, phase = pair.first.key.role, pair.first.key.phase
        if role not in _GRADIENTS and (phase is not Phase.FORWARD or role not in _HELD | _LAYERS):
            continue
        orders = tuple(event.order for event in pair.reference)
        for position, event in enumerate(pair.port):
            given[event.key] = Given(orders, pair.transform, position)
        if role is Role.OUTPUT or (role is Role.INPUT and own_gradients):
            given |= _gradients(pair, known)
    return ForcingPlan(reference.path, given)


def _gradients(pair: EventPair, known: Mapping[EventKey, int]) -> dict[EventKey, Given]:
    orders = [known.get(key) for event in pair.reference if (key := event.key.gradient)]
    found = tuple(order for order in orders if order is not None)
    if len(found) != len(pair.reference):
        return {}
    return {
        key: Given(found, pair.transform, position)
        for position, event in enumerate(pair.port)
        if (key := event.key.gradient)
    }
