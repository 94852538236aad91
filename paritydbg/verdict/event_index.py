"""A run's events by what they are looked up by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.record import RunRecord
from paritydbg.verdict.calls import CallId, CallNode


class EventIndex:
    """Events by what they are looked up by."""

    def __init__(self, run: RunRecord, events: Iterable[Event]) -> None:
        self._owners = {p.name: p.layer for p in run.parameters}
        self._named: dict[tuple[Role, Phase, str, int, int], list[Event]] = {}
        self._held: dict[tuple[str, int, int], list[Event]] = {}
        self._of_step: dict[tuple[Role, int, int], list[Event]] = {}
        self._calls: dict[tuple[str, int, int], list[CallNode]] | None = None
        tied: dict[str, list[str]] = {}
        for parameter in run.parameters:
            if parameter.tied_to:
                tied.setdefault(parameter.tied_to, []).append(parameter.layer)
        for event in events:
            key = event.key
            self._of_step.setdefault((key.role, key.step, key.rank), []).append(event)
            if key.role in (Role.PARAMETER, Role.BUFFER, Role.GRAD, Role.GRAD_APPLIED):
                place = key.role, key.phase, key.name, key.step, key.rank
                self._named.setdefault(place, []).append(event)
                if key.phase is Phase.FORWARD:
                    for owner in (self.owner(key.name), *tied.get(key.name, ())):
                        self._held.setdefault((owner, key.step, key.rank), []).append(event)

    def owner(self, name: str) -> str:
        """The layer that a parameter or buffer belongs to."""
        return self._owners.get(name, name.rpartition(".")[0])

    def held(self, layer: str, step: int, rank: int) -> list[Event]:
        """A layer's parameters and buffers, tied ones too, before the step."""
        return self._held.get((layer, step, rank), [])

    def after(self, role: Role, name: str, step: int, rank: int) -> list[Event]:
        """A parameter or buffer after the step."""
        return self._named.get((role, Phase.UPDATE, name, step, rank), [])

    def before(self, role: Role, name: str, step: int, rank: int) -> list[Event]:
        """A parameter or buffer before the step."""
        return self._named.get((role, Phase.FORWARD, name, step, rank), [])

    def given(self, name: str, step: int, rank: int) -> list[Event]:
        """What the optimizer was given, else what autograd made."""
        return self._named.get(
            (Role.GRAD_APPLIED, Phase.UPDATE, name, step, rank),
            self._named.get((Role.GRAD, Phase.BACKWARD, name, step, rank), []),
        )

    def batch(self, step: int, rank: int) -> list[Event]:
        return self._of_step.get((Role.BATCH, step, rank), [])

    def losses(self, step: int, rank: int) -> list[Event]:
        return self._of_step.get((Role.LOSS, step, rank), [])

    def gradients(self, step: int, rank: int) -> list[Event]:
        return self._of_step.get((Role.GRAD, step, rank), [])

    def calls_of(
        self, calls: Mapping[CallId, CallNode], layer: str, step: int, rank: int
    ) -> list[CallNode]:
        if self._calls is None:
            self._calls = {}
            for node in calls.values():
                place = node.name, node.moment[0], node.moment[1]
                self._calls.setdefault(place, []).append(node)
        return self._calls.get((layer, step, rank), [])
