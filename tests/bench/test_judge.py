"""The bench's judge: what counts as a right place, stage and cause."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from casebench.cases import find_cases
from casebench.judge import Answer, answer_of, cause_right, location_right, stage_right


@pytest.mark.parametrize(
    ("place", "accepted"),
    [
        ("norm", ["norm"]),
        ("before norm", ["norm"]),
        ("after enc2", ["enc2"]),
        ("before blocks.0.fc1", ["blocks.0"]),
        ("attn/softmax", ["attn"]),
        ("l2.weight", ["l2"]),
        ("fc#1", ["fc"]),
        ("fc#2", ["fc#2"]),
        ("step1:fc.weight", ["step1"]),
        ("inputs:x", ["x", "inputs:x"]),
    ],
)
def test_these_places_are_right(place: str, accepted: list[str]) -> None:
    assert location_right(place, accepted)


@pytest.mark.parametrize(
    ("place", "accepted"),
    [
        ("", ["norm"]),
        ("norm2", ["norm"]),
        ("norm", ["norm.weight"]),
        ("fc#1", ["fc#2"]),
        ("step2", ["step1"]),
        ("step10", ["step1"]),
        ("(net)", ["head"]),
    ],
)
def test_these_places_are_wrong(place: str, accepted: list[str]) -> None:
    assert not location_right(place, accepted)


def test_stages_that_are_fair_readings_count() -> None:
    assert stage_right("weights", "forward")
    assert not stage_right("forward", "weights")
    assert stage_right("update", "loss-scale")


def test_joined_causes_are_right_in_any_order() -> None:
    assert cause_right(["b", "a", "c"], "a+b")
    assert not cause_right(["a", "c"], "a+b")
    assert not cause_right([], "a")


def test_an_answer_is_read_from_the_report() -> None:
    finding = {"place": "fc", "stage": "forward", "causes": [{"slug": "dtype-cast"}]}
    answer = answer_of(1, {"findings": [finding], "coverage": {"share": 0.9}})
    assert answer == Answer(1, "fc", "forward", ("dtype-cast",), 0.9)
    assert Answer(2).crashed
    assert not answer.crashed


def test_the_cases_here_are_found_and_helpers_are_not() -> None:
    names = [case.name for case in find_cases([ROOT / "tests" / "cases"])]
    assert len(names) == 32
    assert "caselib" not in names


def test_every_sample_fault_is_a_case_that_shares_its_pairs_clean_run() -> None:
    cases = find_cases([ROOT / "sample_nets"])
    assert len(cases) >= 36
    assert len({case.twin for case in cases}) == 6


def test_a_folder_without_cases_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no case file"):
        find_cases([tmp_path])
