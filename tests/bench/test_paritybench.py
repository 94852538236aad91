"""The bench as a person runs it, on two cases: its table, its totals, its JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from casebench.cases import Case, find_cases, seeded
from casebench.judge import Answer
from casebench.lower import CleanRun, run_lower
from paritybench import run_variant


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


def test_replays_are_made_of_fresh_optimizers_and_asked_too() -> None:
    (case,) = find_cases([ROOT / "tests" / "cases"], ("u07",))
    answer, expected = run_variant(case, "faulty", 300.0, forced=True)
    assert not answer.crashed, answer.error
    assert answer.exit_code == 1
    assert answer.place.startswith(expected["first"][0])


def test_further_seeds_are_cases_and_twins_of_their_own_and_case_files_have_one() -> None:
    cases = [Case("a", Path("a.py"), twin="a"), Case("p/f", Path("p"), "f", "p")]
    found = seeded(cases, 3)
    assert [case.name for case in found] == ["a", "p/f", "p/f@1", "p/f@2"]
    assert [case.seed for case in found] == [0, 0, 1, 2]
    assert len({case.twin for case in found}) == 4
    assert Case.decoded(found[-1].encoded()) == found[-1]


def test_lower_precisions_run_each_pair_once_and_know_what_a_kernel_does() -> None:
    cases = find_cases([ROOT / "sample_nets" / "resnet50"])
    asked: list[Case] = []

    def answer(case: Case) -> Answer:
        asked.append(case)
        return Answer(1, place="bn1.running_mean") if case.precision == "fp16" else Answer(0)

    runs = run_lower(cases, ["fp16", "mixed"], answer, 1)
    assert [case.precision for case in asked] == ["fp16", "mixed"]
    assert [one.outcome for one in runs] == ["known", "quiet"]


def test_what_is_not_known_is_an_alarm_and_what_is_known_and_not_named_is_missed() -> None:
    assert CleanRun("a fp16", (), Answer(1, place="fc")).outcome == "ALARM"
    assert CleanRun("a fp16", ("bn",), Answer(1, place="fc")).outcome == "ALARM"
    assert CleanRun("a fp16", ("bn",), Answer(0)).outcome == "MISSED"
    assert CleanRun("a fp16", (), Answer(None, error="no kernel")).outcome == "cannot run"
