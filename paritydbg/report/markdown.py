"""A report as Markdown, for an issue or a merge request."""

from __future__ import annotations

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


def to_markdown(report: Report, rows: tuple[Row, ...] = ()) -> str:
    """The report as Markdown text, with a table of pairs where rows are given."""
    parts = [f"# {headline(report)}", ""]
    parts += [f"- reference: `{run_text(report.reference, report.reference_path)}`"]
    parts += [f"- port: `{run_text(report.port, report.port_path)}`", ""]
    for number, finding in enumerate(report.findings, 1):
        parts += _section(f"## {number}. {finding.place} ({where(finding)})", finding, report)
    for finding in report.suspects:
        parts += _section(f"## Suspect: {finding.place} ({where(finding)})", finding, report)
    if rows:
        parts += _table(rows)
    parts += [coverage_text(report) + ".", ""]
    parts += [f"- {note}" for note in report.notes]
    parts += ["", f"Next: `{next_command(report)}`", ""]
    return "\n".join(parts)


def _section(title: str, finding: Finding, report: Report) -> list[str]:
    parts = [title, ""]
    for line in finding_lines(finding, report):
        text = f"`{line.text}`" if line.code else line.text
        parts.append(f"- **{line.label}**: {text}" if line.label else f"  {text}")
    return [*parts, ""]


def _table(rows: tuple[Row, ...]) -> list[str]:
    names = Row.names()
    lines = ["| " + " | ".join(names) + " |", "| " + " | ".join("---" for _ in names) + " |"]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in r.cells()) + " |" for r in rows
    ]
    return [*lines, ""]
