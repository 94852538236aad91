"""A sample of the mapping tables held against the installed frameworks, by the script that checks all."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from verify_apimap import Tally, chosen, mismatches, parameters, same_default  # noqa: E402


def test_layers_and_optimizers_exist_with_the_defaults_that_the_table_names() -> None:
    tally = Tally()
    rows = (*chosen("torch.nn.[A-Z]*", 60), *chosen("torch.optim.[A-Z]*", 10))
    assert list(mismatches(rows, tally)) == []
    assert tally.existing > len(rows)
    assert tally.defaults > 20


def test_a_wrong_default_and_a_missing_api_are_mismatches() -> None:
    (row,) = chosen("torch.nn.LeakyReLU", 0)
    first = next(a for a in row.alternatives if a.defaults)
    wrong = dataclasses.replace(first.defaults[0], mindspore_default="0.5")
    gone = dataclasses.replace(first, api="mindspore.nn.NoSuchLayer", defaults=())
    told = dataclasses.replace(
        row, alternatives=(dataclasses.replace(first, defaults=(wrong,)), gone)
    )
    found = list(mismatches((told,), Tally()))
    assert len(found) == 2
    assert "the table says 0.5" in found[0]
    assert "not in the installed MindSpore" in found[1]


def test_numbers_of_the_table_are_floats_and_names_stay_names() -> None:
    assert same_default(1, "1.0")
    assert same_default(None, "None")
    assert same_default("same", "same")
    assert not same_default(True, "1.0")
    assert parameters(len) is not None
