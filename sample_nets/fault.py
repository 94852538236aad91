"""The value that describes one switchable migration mistake, with its check and its listing.

The nets themselves, and each pair's faults, live in the pairs' folders.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Literal

Stage = Literal[
    "input-data", "config", "structure", "weights", "forward", "loss", "backward",
    "running-stats", "loss-scale", "update", "state",
]  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One mistake that a port can carry, and the answer a debugger owes for it.

    Attributes:
        name: how the fault is switched on, for instance ``layernorm-eps``.
        first: accepted places, by the reference's names: a layer, ``layer.parameter``, ``loss``,
            ``stepN``, ``state:key``. A place in the glue counts as the layer that encloses it.
        stage: the rung of the ladder on which values first part.
        cause: the cause's slug.
        summary: one sentence on the mistake and how it comes about in real ports.
        silent: True where no layer attribute gives it away.
        backward_only: True where forward values agree and only gradients part.
    """

    name: str
    first: tuple[str, ...]
    stage: Stage
    cause: str
    summary: str
    silent: bool = False
    backward_only: bool = False


def check_fault(name: str | None, faults: tuple[Fault, ...]) -> str | None:
    """The name, when it is None or one of ``faults``; else a ValueError naming the known ones."""
    known = [fault.name for fault in faults]
    if name is not None and name not in known:
        raise ValueError(f"unknown fault {name!r}. Choose one of: {', '.join(known)}")
    return name


def describe_faults(pairs: tuple[str, ...]) -> str:
    """The pairs and, below each, its faults with their summaries, one a line."""
    lines = []
    for pair in pairs:
        lines.append(pair)
        for fault in importlib.import_module(f"sample_nets.{pair}.faults").FAULTS:
            lines.append(f"  {fault.name:28} {fault.summary}")
    return "\n".join(lines)
