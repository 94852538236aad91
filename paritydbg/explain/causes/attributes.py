"""Causes that the layers' attributes tell: one was told something else than the other."""

from __future__ import annotations

from collections.abc import Iterable

from paritydbg.explain.context import Context
from paritydbg.model.finding import AttributeDifference, Cause, Finding, Stage
from paritydbg.model.record import Attribute

# What an attribute has to change for it to be the reason of a finding at that stage.
_CHANGES = {
    Stage.FORWARD: ("forward",),
    Stage.BACKWARD: ("forward", "backward"),
    Stage.LOSS: ("forward",),
    Stage.RUNNING_STATS: ("running-stats",),
}


def from_attributes(finding: Finding, _context: Context) -> Iterable[Cause]:
    """One cause per difference of attributes; surest where it changes what the finding is about."""
    wanted = _CHANGES.get(finding.stage)
    for difference in finding.attributes:
        if not difference.cause:
            continue
        fits = wanted is None or difference.changes in wanted
        open_effect = not difference.changes
        sure = 0.9 if fits else 0.6 if open_effect else 0.3
        if difference.changes == "update":
            # Whether it is the reason is told by the values.
            sure = 0.5
        yield Cause(difference.cause, _sentence(difference), _evidence(difference), sure)


def _sentence(difference: AttributeDifference) -> str:
    name = difference.port_name or difference.name
    text = f"the port was built with {name}={_shown(difference.port)}"
    if difference.expected is not None:
        text += f" where the reference's settings ask for {name}={_shown(difference.expected)}"
    else:
        text += f", the reference with {difference.name}={_shown(difference.reference)}"
    return text


def _evidence(difference: AttributeDifference) -> str:
    return (
        f"reference {difference.name}={_shown(difference.reference)}, "
        f"port {difference.port_name or difference.name}={_shown(difference.port)}"
    )


def _shown(value: Attribute) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
