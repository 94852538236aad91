"""The bench that holds modelled rounding against measured rounding."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from click.testing import CliRunner

from paritydbg.model.event import EventKey, Phase, Role

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from noisebench import kind_of, main


def test_a_pair_gets_a_row_per_kind_of_tensor_with_noise_in_float64_too(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    told = CliRunner().invoke(
        main, [str(ROOT / "sample_nets"), "--net", "lenet5", "--json", str(out)]
    )
    assert told.exit_code == 0, told.output
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert {row["kind"] for row in rows} == {
        "activations",
        "loss",
        "gradients",
        "parameter gradients",
    }
    for row in rows:
        assert row["pair"] == "lenet5"
        assert 0 < row["exact"] <= row["tensors"]
        assert 0 < row["low"] <= row["median"] <= row["high"]
        assert f"{row['median']:.3g}" in told.output


def test_a_pair_that_is_not_there_is_named_with_those_that_are() -> None:
    told = CliRunner().invoke(main, [str(ROOT / "sample_nets"), "--net", "vgg"])
    assert told.exit_code == 2
    assert "vgg" in told.output
    assert "lenet5" in told.output


def test_kinds_are_told_by_role_and_phase() -> None:
    forward, backward = Phase.FORWARD, Phase.BACKWARD
    assert kind_of(EventKey(1, forward, Role.OUTPUT, "a")) == "activations"
    assert kind_of(EventKey(1, backward, Role.GRAD_INPUT, "a")) == "gradients"
    assert kind_of(EventKey(1, backward, Role.GRAD, "a.weight")) == "parameter gradients"
    assert kind_of(EventKey(1, forward, Role.LOSS, "loss")) == "loss"
