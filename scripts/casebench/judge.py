"""Holds an answer of the tool against the expected one; the rules of the case protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Stages that count as each other, where two readings are fair: expected -> also right.
ALSO_RIGHT: Mapping[str, frozenset[str]] = {
    "forward": frozenset({"weights", "config"}),
    "config": frozenset({"forward", "structure"}),
    "structure": frozenset({"weights", "forward", "backward"}),
    "loss": frozenset({"forward"}),
    "running-stats": frozenset({"state", "weights"}),
    "loss-scale": frozenset({"update"}),
    "state": frozenset({"update"}),
    "distributed": frozenset({"backward", "update", "running-stats"}),
    "tool-usage": frozenset({"update", "state"}),
}


@dataclass(frozen=True)
class Answer:
    """What the tool said of one pair of dumps.

    Attributes:
        exit_code: 0 parity, 1 divergence, anything else (or None) a crash.
        place, stage: of the first finding, ``""`` without one.
        causes: slugs of the first finding, likely first.
        compared: share of captured events that were compared.
        error: the last line of what a crashed process said.
    """

    exit_code: int | None
    place: str = ""
    stage: str = ""
    causes: tuple[str, ...] = ()
    compared: float = 0.0
    error: str = ""

    @property
    def crashed(self) -> bool:
        """Whether there is no answer at all."""
        return self.exit_code not in (0, 1)


def answer_of(exit_code: int, report: Mapping[str, Any]) -> Answer:
    """The answer in a report's JSON."""
    findings = report["findings"]
    share = float(report["coverage"]["share"])
    if not findings:
        return Answer(exit_code, compared=share)
    first = findings[0]
    return Answer(
        exit_code,
        place=first["place"],
        stage=first["stage"],
        causes=tuple(cause["slug"] for cause in first["causes"]),
        compared=share,
    )


def location_right(place: str, accepted: Sequence[str]) -> bool:
    """Whether a place is one of the accepted ones, or lies in one.

    The glue before or after a layer counts as that layer or one that encloses it; an operator or
    parameter of an accepted layer as the layer; ``step1:name`` as ``step1``.
    """
    bare = place.removeprefix("before ").removeprefix("after ").split("/")[0]
    for name in accepted:
        if bare == name or bare.split("#")[0] == name:
            return True
        if ":" not in name and bare.startswith((f"{name}.", f"{name}#")):
            return True
        if name.startswith("step") and bare.startswith(f"{name}:"):
            return True
    return False


def stage_right(stage: str, expected: str) -> bool:
    """Whether a stage is the expected one or counts as it."""
    return stage == expected or stage in ALSO_RIGHT.get(expected, frozenset())


def cause_right(causes: Sequence[str], expected: str) -> bool:
    """Whether the likeliest causes are the expected ones (several are joined with ``+``)."""
    parts = set(expected.split("+"))
    return bool(expected) and set(causes[: len(parts)]) == parts
