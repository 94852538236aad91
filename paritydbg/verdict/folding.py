"""Origins that tell of one fault: a layer's backward pass beside its forward, glue seen at several ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paritydbg.model.event import Event, Phase, Role
from paritydbg.verdict.calls import CallId, CallNode, call_id
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.judge import Judged

_COUNTERPARTS = {Role.GRAD_OUTPUT: "outputs", Role.GRAD_INPUT: "inputs"}


def folded(
    origins: Sequence[Judged], flow: Flow
) -> tuple[tuple[Judged, ...], Mapping[Event, tuple[Judged, ...]]]:
    """The origins that stand for themselves, and what was folded into each.

    What computes another value forward has another gradient as well: an origin backward is folded
    into one forward that its own tensor flows into, or that is the same call's. Backward, what one
    call sends to its input and to its parameters is one thing, and so is what one piece of glue sends
    to the layers before it.
    """
    forward = [one for one in origins if one.event.key.phase is Phase.FORWARD]
    made_by = {s: one.event for one in reversed(forward) for s in flow.sources[one.event]}
    wrong = {call_id(o.event.key): o.event for o in forward if o.event.key.role is Role.OUTPUT}
    seen: dict[object, Event] = {}
    kept: list[Judged] = []
    into: dict[Event, tuple[Judged, ...]] = {}
    for one in origins:
        if one.event.key.phase is not Phase.BACKWARD:
            kept.append(one)
            continue
        head = _forward_head(one, flow, made_by, wrong)
        place = _place(one, flow)
        if head is None:
            head = seen.setdefault(place, one.event)
        if head == one.event:
            kept.append(one)
        else:
            into[head] = (*into.get(head, ()), one)
    return tuple(kept), into


def _forward_head(
    one: Judged, flow: Flow, made_by: Mapping[Event, Event], wrong: Mapping[CallId, Event]
) -> Event | None:
    """The forward origin that explains a backward one."""
    key = one.event.key
    for call in _calls(one, flow):
        if key.role is not Role.GRAD_OUTPUT and (found := wrong.get(_identity(call, one))):
            return found
        tensors: list[Event] = getattr(call, _COUNTERPARTS.get(key.role, ""), [])
        for tensor in tensors:
            head = made_by.get(tensor)
            # Of a layer's input the layer itself is made; only glue may stand in between.
            if head is not None and (head.key.role is not Role.OUTPUT or _encloses(head, call)):
                return head
    return None


def _encloses(head: Event, call: CallNode) -> bool:
    """Whether the origin is the output of a layer that the call lies in or is: its own glue."""
    name = head.key.name
    return call.name == name or name == "" or call.name.startswith(f"{name}.")


def _identity(call: CallNode, one: Judged) -> CallId:
    return call.moment[0], one.event.key.rank, call.name, call.number


def _calls(one: Judged, flow: Flow) -> list[CallNode]:
    key = one.event.key
    if key.role is Role.GRAD:
        return flow.calls_of(flow.owner(key.name), key.step, key.rank)
    call = flow.call(one.event)
    return [call] if call is not None else []


def _place(one: Judged, flow: Flow) -> object:
    """What a backward origin belongs to: a layer's call, or the glue of the layer around it."""
    key = one.event.key
    if key.role is Role.GRAD:
        return key.step, flow.owner(key.name)
    if key.role is Role.GRAD_INPUT:
        return key.step, key.name
    call = flow.call(one.event)
    around = call.parent.name if call is not None and call.parent is not None else None
    return key.step, "glue", around, call.parent.number if call and call.parent else 0
