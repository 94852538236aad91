"""Runs a part of a bench in a process of its own: a crash or a hang there is an answer like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from casebench.cases import Case

SCRIPTS = Path(__file__).resolve().parents[1]


def run_apart(
    module: str, arguments: Sequence[str], folder: Path, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m MODULE`` in a folder, on one thread; 124 where it takes longer."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(SCRIPTS), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", module, *arguments]
    try:
        return subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no answer within {seconds:g} s")


def record_apart(
    case: Case, variant: str, out: Path, expected: Path, seconds: float, forced: bool = False
) -> str:
    """Record both sides of a case into ``out``; why that failed, ``""`` where it did not.

    Args:
        forced: whether forced replays of both are recorded as well.
    """
    arguments = [case.encoded(), variant, str(out), str(expected), *(["forced"] if forced else [])]
    done = run_apart("casebench.record", arguments, out, seconds)
    return last_line(done.stderr) if done.returncode else ""


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
