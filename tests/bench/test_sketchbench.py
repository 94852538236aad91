"""The bench that judges recorded runs by values and by sketches."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from casebench.cases import Case, find_cases
from sketchbench import Result, bench, chosen, totals

LENET = ROOT / "sample_nets" / "lenet5"


def test_a_clean_pair_and_its_faults_are_chosen_evenly() -> None:
    cases = find_cases([LENET])
    picked = chosen(cases, 2)
    assert [variant for _, variant in picked] == ["clean", "faulty", "faulty"]
    assert len({case.name for case, variant in picked if variant == "faulty"}) == 2


def test_sketches_of_a_small_net_lie_within_their_error_bars_and_find_the_same() -> None:
    case: Case = find_cases([LENET])[0]
    result = bench(case, "faulty", 300.0)
    assert not result.error
    assert result.sketched > 50
    assert result.outside == ()
    assert result.same_findings
    assert result.findings
    assert 0 < result.sketch_bytes < result.full_bytes


def test_totals_leave_failed_runs_out_and_count_them() -> None:
    good = Result(
        "a", verdicts=10, differ=3, untested=1, within=1, outside=("x",), findings=("fc",)
    )
    bad = Result("b", error="killed")
    told = totals([good, replace(good, sketch_findings=("fc",)), bad])
    assert (told["runs"], told["failed"], told["verdicts"], told["outside"]) == (2, 1, 20, 2)
    assert (told["same_findings"], told["same_first"]) == (1, 1)
