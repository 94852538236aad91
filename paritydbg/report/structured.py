"""A report as plain JSON values, in a schema that has a version of its own."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from paritydbg.model.comparison import Comparison
from paritydbg.model.finding import Finding
from paritydbg.model.record import RunRecord
from paritydbg.model.report import Report

# Changes when a name disappears or changes its meaning; new names alone do not change it.
SCHEMA = "paritydbg.report/1"


def to_json(report: Report, *, every_pair: bool = False) -> str:
    """The report as JSON text; numbers that JSON lacks are the strings ``nan``, ``inf``, ``-inf``.

    Args:
        report: the report.
        every_pair: whether to list every comparison too, not only those that findings rest on.
    """
    return json.dumps(to_values(report, every_pair=every_pair), indent=2, ensure_ascii=False)


def to_values(report: Report, *, every_pair: bool = False) -> dict[str, Any]:
    """The report as dicts, lists, strings, numbers, booleans and None."""
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "exit_code": report.exit_code,
        "reference": _run(report.reference, report.reference_path),
        "port": _run(report.port, report.port_path),
        "findings": [_finding(finding) for finding in report.findings],
        "suspects": [_finding(finding) for finding in report.suspects],
        "coverage": {
            "captured": report.coverage.captured,
            "compared": report.coverage.compared,
            "masked": report.coverage.masked,
            "share": report.coverage.share,
            "untested": [{"reason": r, "events": n} for r, n in report.coverage.untested],
        },
        "alignment": {
            "layers": [
                {"reference": p.reference, "port": p.port, "how": p.how, "confidence": p.confidence}
                for p in report.alignment.layers
            ],
            "lone_reference": list(report.alignment.lone_reference),
            "lone_port": list(report.alignment.lone_port),
        },
        "notes": list(report.notes),
    }
    if every_pair:
        values["comparisons"] = [comparison_values(c) for c in report.comparisons]
    return values


def comparison_values(comparison: Comparison) -> dict[str, Any]:
    """One compared pair, its key flattened."""
    key = comparison.pair.first.key
    return {
        "step": key.step,
        "phase": key.phase.value,
        "role": key.role.value,
        "name": key.name,
        "call": key.call,
        "slot": key.slot,
        "micro": key.micro,
        "port_name": comparison.pair.port[0].key.name,
        "transform": comparison.pair.transform.describe(),
        "how": comparison.pair.how,
        "verdict": comparison.verdict.value,
        "score": _plain(comparison.score),
        "reason": comparison.reason,
        "shape": {
            "reference": [list(e.shape) for e in comparison.pair.reference],
            "port": [list(e.shape) for e in comparison.pair.port],
        },
        "dtype": {
            "reference": comparison.pair.first.dtype,
            "port": comparison.pair.port[0].dtype,
        },
        "metrics": _plain(comparison.metrics),
        "allowance": _plain(comparison.allowance),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    values = {
        field.name: _plain(getattr(finding, field.name))
        for field in fields(finding)
        if field.name != "evidence"
    }
    evidence = finding.evidence
    values["evidence"] = comparison_values(evidence) if evidence is not None else None
    return values


def _run(run: RunRecord, path: str) -> dict[str, Any]:
    return {
        "path": path,
        "environment": _plain(run.environment),
        "command": run.command,
        "complete": run.complete,
        "ended": run.ended,
        "skipped": _plain(run.skipped),
        "taken": _plain(run.taken),
        "notes": list(run.notes),
    }


def _plain(value: object) -> Any:
    """The value in JSON's own types."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return value
