"""Names the place of an origin: a layer, the glue before or after one, a parameter, a step."""

from __future__ import annotations

from collections.abc import Callable

from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.finding import Stage
from paritydbg.model.source import EventSource
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.judge import Judged
from paritydbg.verdict.users import only_user

_STAGES = {
    Role.BATCH: Stage.INPUT_DATA,
    Role.LOSS: Stage.LOSS,
    Role.STATE: Stage.STATE,
    Role.GRAD_APPLIED: Stage.UPDATE,
    Role.GRAD: Stage.BACKWARD,
    Role.GRAD_OUTPUT: Stage.BACKWARD,
    Role.GRAD_INPUT: Stage.BACKWARD,
    Role.INPUT: Stage.FORWARD,
    Role.OUTPUT: Stage.FORWARD,
}


def stage_of(event: Event, flow: Flow) -> Stage:
    """The rung on which an origin at this event lies."""
    key = event.key
    call = flow.call(event)
    made_here = any(source.key.role is Role.OUTPUT for source in flow.sources[event])
    if key.role is Role.INPUT and call is not None and call.parent is None and not made_here:
        # What a net is given from outside is the batch, prepared.
        return Stage.INPUT_DATA
    if key.role is Role.PARAMETER:
        return Stage.WEIGHTS if key.phase is Phase.FORWARD else Stage.UPDATE
    if key.role is Role.BUFFER:
        return Stage.WEIGHTS if key.phase is Phase.FORWARD else Stage.RUNNING_STATS
    return _STAGES[key.role]


def place_of(
    judged: Judged, flow: Flow, reference: EventSource, agrees: Callable[[Event], bool]
) -> str:
    """The place of an origin by the reference's names."""
    event = judged.event
    key = event.key
    if key.role is Role.BATCH:
        return f"inputs:{key.name}"
    if key.role is Role.STATE:
        return f"state:{key.name}"
    if key.role is Role.INPUT:
        return f"before {_innermost(event, flow)}"
    if key.role is Role.GRAD_OUTPUT:
        user = None if judged.missing else only_user(event, flow, reference, agrees)
        return user.key.place if user is not None else f"after {key.place}"
    if key.role in (Role.GRAD_APPLIED,):
        return f"step{key.step}:{key.name}"
    if key.role in (Role.GRAD_INPUT, Role.OUTPUT):
        return key.place
    return key.name or "(net)"


def _innermost(event: Event, flow: Flow) -> str:
    """The layer an input leads into: a container hands it on to the first one inside."""
    place = event.key.place
    call = flow.call(event)
    while call is not None:
        inner = [
            (child, tensor)
            for child in call.inside
            for tensor in child.inputs
            if tensor.digest == event.digest
        ]
        if not inner:
            break
        call, tensor = inner[0]
        place = tensor.key.place
    return place
