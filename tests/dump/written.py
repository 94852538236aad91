"""Small dumps for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from paritydbg.dump.writer import DumpWriter
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment

ENVIRONMENT = Environment("torch", "2.0", "cpu", settings=(("threads", 1),))


def key(name: str, step: int = 1) -> EventKey:
    """The key of a layer's output."""
    return EventKey(step, Phase.FORWARD, Role.OUTPUT, name)


def write(path: Path, tensors: dict[str, NDArray[Any]]) -> Path:
    """A finished dump with one output per name."""
    with DumpWriter(path, ENVIRONMENT) as writer:
        for name, array in tensors.items():
            writer.add(key(name), Values.of(array))
    return path
