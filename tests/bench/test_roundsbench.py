"""The bench of what a bisection in rounds costs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import roundsbench
from roundsbench import Cost, main


def test_the_ratio_counts_all_runs_and_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = Cost(plain=2.0, next_step=0.5, reference=6.0, port=3.0, comparing=1.0, runs=8)
    monkeypatch.setattr(roundsbench, "measure", lambda pair, folder: cost)
    told = CliRunner().invoke(main, ["lenet5"])
    assert told.exit_code == 0
    assert "lenet5: 5.0 times" in told.output
    assert "8 captured runs 9.00 s" in told.output


def test_an_unknown_pair_is_refused() -> None:
    told = CliRunner().invoke(main, ["vgg"])
    assert told.exit_code == 2
    assert "vgg" in told.output
