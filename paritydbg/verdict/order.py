"""The order in which events are judged: step by step, up the ladder, as they ran within a rung."""

from __future__ import annotations

from paritydbg.model.event import Event, Phase, Role

# Within a step: what it starts from, then each micro-batch forward, its loss, backward, then updates.
_START, _PASSES, _APPLIED, _AFTER, _STATE = range(5)
_FORWARD, _LOSS, _BACKWARD = range(3)


def walk_order(event: Event) -> tuple[int, int, int, int, int, int]:
    """A key to sort events by; numbers of execution alone would put a loss told late behind backward."""
    key = event.key
    return (key.step, *_rung(event), key.rank, event.order)


def _rung(event: Event) -> tuple[int, int, int]:
    key = event.key
    if key.role is Role.BATCH:
        return _PASSES, key.micro, -1
    if key.role in (Role.PARAMETER, Role.BUFFER):
        return (_START if key.phase is Phase.FORWARD else _AFTER), 0, 0
    if key.role is Role.STATE:
        return _STATE, 0, 0
    if key.role is Role.LOSS:
        return _PASSES, key.micro, _LOSS
    if key.role is Role.GRAD_APPLIED:
        return _APPLIED, 0, 0
    return _PASSES, key.micro, _FORWARD if key.phase is Phase.FORWARD else _BACKWARD
