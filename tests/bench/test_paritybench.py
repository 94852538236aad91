"""The bench as a person runs it, on two cases: its table, its totals, its JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_two_cases_are_recorded_answered_and_judged(tmp_path: Path) -> None:
    for name in ("caselib.py", "f01_layernorm_eps_lowvar.py", "t01_inplace_capture.py"):
        shutil.copy(ROOT / "tests" / "cases" / name, tmp_path)
    out = tmp_path / "out.json"
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "scripts" / "paritybench.py"),
            str(tmp_path),
            "--json",
            str(out),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "2 cases: location 2" in done.stdout
    report = json.loads(out.read_text())
    totals = report["totals"]
    assert totals["cases"] == totals["location_right"] == totals["stage_right"] == 2
    assert totals["clean_runs"] == 2
    assert totals["false_alarms"] == totals["crashes"] == 0
    assert totals["compared_share"] > 0.95
    by_name = {case["case"]: case for case in report["cases"]}
    assert by_name["f01_layernorm_eps_lowvar"]["named"] == "norm"
    assert by_name["f01_layernorm_eps_lowvar"]["expected_first"] == ["norm"]
    assert by_name["t01_inplace_capture"]["expected_first"] == []
