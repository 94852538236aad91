"""Names the place of an origin: a layer, the glue before or after one, a parameter, a step."""

from __future__ import annotations

from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.finding import Stage
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.judge import Judged

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


def stage_of(event: Event) -> Stage:
    """The rung on which an origin at this event lies."""
    key = event.key
    if key.role is Role.PARAMETER:
        return Stage.WEIGHTS if key.phase is Phase.FORWARD else Stage.UPDATE
    if key.role is Role.BUFFER:
        return Stage.WEIGHTS if key.phase is Phase.FORWARD else Stage.RUNNING_STATS
    return _STAGES[key.role]


def place_of(judged: Judged, flow: Flow) -> str:
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
        user = None if judged.missing else _only_user(event, flow)
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


def _only_user(event: Event, flow: Flow) -> Event | None:
    """The input of the one layer that was given this call's output; None if there are several.

    The gradient of a tensor is seen where it was made and where it was used: if just one layer used
    it, that layer's backward made it.
    """
    call = flow.call(event)
    if call is None:
        return None
    made = {tensor.digest for tensor in call.outputs if tensor.key.slot == event.key.slot}
    users = [
        tensor
        for other in flow.calls.values()
        if other.moment == call.moment and other is not call
        for tensor in other.inputs
        if tensor.digest in made and tensor.order > call.closed
    ]
    by_name = {tensor.key.name: tensor for tensor in users}
    names = sorted(by_name, key=len)
    if not names or any(not _within(name, names[0]) for name in names):
        return None
    place = names[0]
    # A container's glue may use its input beside the layer inside: only a chain has none.
    for name in names[1:]:
        if not flow.is_chain(place):
            break
        place = name
    return by_name[place]


def _within(name: str, outer: str) -> bool:
    return name == outer or not outer or name.startswith(f"{outer}.")
