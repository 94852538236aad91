"""The benchmark runs and prints every figure that the format's document quotes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench_dump.py"


def test_the_benchmark_prints_every_ratio() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, check=True
    )
    begins = (
        "4 KB tensors: plain append",
        "4 KB tensors behind a writer thread",
        "64 MB tensors: plain write",
        "64 MB tensors behind a writer thread",
        "opening a dump of 20,000 events",
    )
    lines = done.stdout.splitlines()
    assert [line.startswith(begin) for line, begin in zip(lines, begins, strict=True)] == [True] * 5
