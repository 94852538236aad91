"""A report on a terminal, with rich: the finding first, then the rest; colour only where one looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paritydbg.model.finding import Finding
from paritydbg.model.report import Report
from paritydbg.report.lines import (
    coverage_text,
    finding_lines,
    headline,
    next_command,
    run_text,
    where,
)
from paritydbg.report.table import Row

if TYPE_CHECKING:
    from rich.console import Console

# Colours and marks; the marks tell the same without colour.
_STYLE = {"MATCH": "green", "INHERITED": "yellow", "SUSPECT": "yellow", "UNTESTED": "dim"}
# How many findings are written out in full; the others get one line each.
_IN_FULL = 3


def print_report(report: Report, console: Console) -> None:
    """Print verdict, findings, coverage and the next command."""
    from rich.text import Text

    mark, style = ("✗", "bold red") if report.findings else ("✓", "bold green")
    console.print(Text(f"{mark} {headline(report)}", style=style), soft_wrap=True)
    for run, path in (
        (report.reference, report.reference_path),
        (report.port, report.port_path),
    ):
        console.print(Text(f"  {run_text(run, path)}", style="dim"), soft_wrap=True)
    for number, finding in enumerate(report.findings, 1):
        _print_finding(f"{number}", finding, report, console, full=number <= _IN_FULL)
    for finding in report.suspects[:_IN_FULL]:
        _print_finding("suspect", finding, report, console, full=False)
    console.print()
    console.print(Text(coverage_text(report) + "."), soft_wrap=True)
    for note in report.notes:
        console.print(Text(f"Note: {note}", style="dim"), soft_wrap=True)
    console.print(Text(f"Next: {next_command(report)}", style="bold"), soft_wrap=True)


def print_table(rows: tuple[Row, ...], console: Console, most: int | None = None) -> None:
    """Print the table of pairs, at most so many rows, and say how many were left off."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    numbers = {"rel L2", "max abs", "cosine", "× allowed"}
    for name in Row.names():
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    shown = rows if most is None else rows[:most]
    for row in shown:
        table.add_row(*(Text(c) for c in row.cells()), style=_STYLE.get(row.verdict, "red"))
    console.print(table)
    if len(shown) < len(rows):
        console.print(f"… {len(rows) - len(shown)} more; --all shows every pair")


def _print_finding(
    number: str, finding: Finding, report: Report, console: Console, full: bool
) -> None:
    from rich.text import Text

    title = f"{number}. {finding.place}  ({where(finding)}, {finding.verdict.value})"
    console.print()
    console.print(Text(title, style="bold" if number != "suspect" else "yellow"), soft_wrap=True)
    if not full:
        console.print(Text(f"   {finding.summary}"), soft_wrap=True)
        return
    for line in finding_lines(finding, report):
        text = Text(f"   {line.label:<10}", style="dim")
        text.append(line.text, style="bold cyan" if line.code else "not dim")
        console.print(text, soft_wrap=True)
