"""The table of compared pairs that ``paritydbg diff`` prints: choosing, sorting, cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from paritydbg.errors import UsageError
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.report.lines import error_bar

Order = Literal["order", "worst", "name"]


@dataclass(frozen=True)
class Choice:
    """Which pairs a table shows; an empty field chooses all."""

    layers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()

    def takes(self, comparison: Comparison) -> bool:
        """Whether the pair is shown."""
        key = comparison.pair.first.key
        return (
            (not self.layers or any(fnmatchcase(key.name, glob) for glob in self.layers))
            and (not self.roles or key.role.value in self.roles)
            and (not self.phases or key.phase.value in self.phases)
            and (not self.verdicts or comparison.verdict.value in self.verdicts)
            and (not self.steps or key.step in self.steps)
        )


@dataclass(frozen=True)
class Row:
    """One pair as a person reads it; the fields are the table's columns."""

    step: str
    place: str
    role: str
    verdict: str
    relative_l2: str
    max_abs: str
    cosine: str
    times_allowed: str
    port: str

    @staticmethod
    def names() -> tuple[str, ...]:
        """The column titles."""
        return (
            "step",
            "place",
            "role",
            "verdict",
            "rel L2",
            "max abs",
            "cosine",
            "× allowed",
            "port",
        )

    def cells(self) -> tuple[str, ...]:
        """The columns' texts."""
        return (
            self.step,
            self.place,
            self.role,
            self.verdict,
            self.relative_l2,
            self.max_abs,
            self.cosine,
            self.times_allowed,
            self.port,
        )


def rows(comparisons: Iterable[Comparison], choice: Choice, order: Order) -> tuple[Row, ...]:
    """The chosen pairs, sorted.

    Args:
        comparisons: in the reference's order of execution.
        choice: which to show.
        order: ``order`` keeps the order of execution, ``worst`` puts the highest score first,
            ``name`` sorts by place.

    Raises:
        UsageError: the choice leaves nothing of what was compared.
    """
    everything = list(comparisons)
    chosen = [comparison for comparison in everything if choice.takes(comparison)]
    if not chosen and everything:
        raise UsageError(
            f"no compared pair fits the filters ({_filters(choice)}); {len(everything)} were compared"
        )
    if order == "worst":
        chosen.sort(key=lambda c: (-_rank(c), c.pair.first.order))
    elif order == "name":
        chosen.sort(key=lambda c: (c.pair.first.key.name, c.pair.first.order))
    return tuple(_row(comparison) for comparison in chosen)


def _rank(comparison: Comparison) -> float:
    return math.inf if math.isnan(comparison.score) else comparison.score


def _filters(choice: Choice) -> str:
    given = [*choice.layers, *choice.roles, *choice.phases, *choice.verdicts, *choice.steps]
    return ", ".join(str(entry) for entry in given) or "none"


def _row(comparison: Comparison) -> Row:
    key = comparison.pair.first.key
    metrics = comparison.metrics
    port = comparison.pair.port[0].key.place
    transform = comparison.pair.transform.describe()
    numbers = ("", "", "")
    if metrics is not None:
        cosine = "" if math.isnan(metrics.cosine) else f"{metrics.cosine:.6f}"
        largest = "" if math.isnan(metrics.max_abs) else f"{metrics.max_abs:.1e}"
        numbers = (f"{metrics.relative_l2:.1e}{error_bar(metrics)}", largest, cosine)
    elif comparison.verdict is Verdict.SHAPE:
        shapes = comparison.pair.first.shape, comparison.pair.port[0].shape
        numbers = (f"{shapes[0]}", f"{shapes[1]}", "")
    return Row(
        step=str(key.step) + (f".{key.micro}" if key.micro else ""),
        place=key.place,
        role=key.role.value
        + (f"[{key.slot}]" if key.slot else "")
        + (" after" if key.phase.value == "update" and key.role.value != "grad_applied" else ""),
        verdict=comparison.verdict.value,
        relative_l2=numbers[0],
        max_abs=numbers[1],
        cosine=numbers[2],
        times_allowed=f"{comparison.score:.3g}",
        port=("=" if port == key.place else port) + (f" ({transform})" if transform else ""),
    )
