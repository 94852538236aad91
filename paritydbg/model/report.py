"""The report: everything the renderers need, complete in one value."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from paritydbg.model.comparison import Comparison
from paritydbg.model.finding import Finding
from paritydbg.model.pair import Alignment
from paritydbg.model.record import RunRecord


@dataclass(frozen=True)
class Coverage:
    """How much was looked at.

    Attributes:
        captured: events of both sides together, but for counters that one framework alone keeps.
        compared: of those, how many were part of a comparison with a verdict from numbers, or have the
            very bytes of one that was.
        untested: reason -> events not compared for it, most frequent first.
        masked: compared pairs that lie behind a dropout which drew other masks, and so tell nothing.
    """

    captured: int
    compared: int
    untested: tuple[tuple[str, int], ...] = ()
    masked: int = 0

    @property
    def share(self) -> float:
        """compared / captured, 0 where nothing was captured."""
        return self.compared / self.captured if self.captured else 0.0


@dataclass(frozen=True)
class Report:
    """The outcome of a diff or bisect.

    Attributes:
        reference_path, port_path: as the user gave them.
        findings: ordered by the ladder; the first is the first divergence.
        suspects: differences above the noise, below what matters, unexplained; no alarm.
        comparisons: every compared pair in the reference's order of execution.
        notes: remarks a reader needs (noise was modelled, steps that only one side has …).
        exit_code: 0 parity, 1 divergence.
    """

    reference_path: str
    port_path: str
    reference: RunRecord
    port: RunRecord
    alignment: Alignment
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    suspects: tuple[Finding, ...]
    coverage: Coverage
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where there is any finding, else 0."""
        return 1 if self.findings else 0

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        # By name, when a notebook asks: the values know nothing of what renders them.
        page = import_module("paritydbg.report.html.page")
        fragment: str = page.to_fragment(self)
        return fragment
