"""A sink that keeps everything in lists."""

from __future__ import annotations

from paritydbg.model.event import EventKey, Values
from paritydbg.session.recording import Record


class ListSink:
    """Events and records in the order in which they came."""

    def __init__(self) -> None:
        self.events: list[tuple[EventKey, Values]] = []
        self.records: list[Record] = []
        self.closed: tuple[bool, str] | None = None

    def add(self, key: EventKey, values: Values) -> None:
        self.events.append((key, values))

    def record(self, record: Record) -> None:
        self.records.append(record)

    def close(self, complete: bool = True, ended: str = "") -> None:
        self.closed = (complete, ended)
