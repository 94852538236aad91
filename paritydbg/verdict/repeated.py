"""Checks that a run which was repeated, as a replay, started and was fed as it was the first time."""

from __future__ import annotations

from collections.abc import Mapping, Set

from paritydbg.model.event import Event, EventKey, Phase, Role
from paritydbg.model.source import EventSource
from paritydbg.verdict.replay import Replay

_START = frozenset({Role.PARAMETER, Role.BUFFER})
_NAMED = 3


def repeated_notes(reference: EventSource, port: EventSource, replay: Replay) -> tuple[str, ...]:
    """A remark for each side whose replay was another run than its free one."""
    fed = {Role.BATCH}
    # The port's own weights are not looked at: its replay was given the reference's.
    sides = (
        ("reference", reference, replay.reference, fed | _START),
        ("port", port, replay.port, fed),
    )
    notes = (_note(side, first, again, roles) for side, first, again, roles in sides)
    return tuple(note for note in notes if note)


def _note(side: str, first: EventSource, again: EventSource, roles: Set[Role]) -> str:
    differ = _differ(_fed(first, roles), _fed(again, roles))
    if differ:
        more = f" and {len(differ) - _NAMED} more" if len(differ) > _NAMED else ""
        return (
            f"the {side}'s replay was another run than its free one: {', '.join(differ[:_NAMED])}"
            f"{more} differ; let the script draw the same data and weights each time, or trust the "
            "free run alone"
        )
    mine, yours = first.run.environment, again.run.environment
    drawn_alike = mine.generator and mine.framework == again.run.environment.framework
    if mine.random_state != yours.random_state and not drawn_alike:
        return (
            f"the {side}'s replay began with other random numbers than its free run; layers that "
            "draw may differ between them; set the seed in the script"
        )
    return ""


def _differ(mine: Mapping[EventKey, Event], yours: Mapping[EventKey, Event]) -> list[str]:
    common = [key for key in mine if key in yours]
    return [_name(key) for key in common if mine[key].digest != yours[key].digest]


def _fed(source: EventSource, roles: Set[Role]) -> Mapping[EventKey, Event]:
    """What a run is fed with and starts from."""
    start = min((event.key.step for event in source.events), default=0)
    return {
        event.key: event
        for event in source.events
        if event.key.role in roles
        and event.key.phase is Phase.FORWARD
        and (event.key.role is Role.BATCH or event.key.step == start)
    }


def _name(key: EventKey) -> str:
    return f"inputs:{key.name}" if key.role is Role.BATCH else key.name
