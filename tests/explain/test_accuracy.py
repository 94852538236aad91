"""A difference that is only a kernel's accuracy: called that, with its size, and no alarm unless asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import paritydbg
from paritydbg.cli.main import exit_code
from paritydbg.dump.writer import DumpWriter
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment, LayerRecord

X = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
OFF = 1 + 3e-5 * np.sign(np.random.default_rng(1).normal(size=(16, 8))).astype(np.float32)


def written(path: Path, framework: str, api: str, output: NDArray[np.float32]) -> str:
    writer = DumpWriter(str(path), Environment(framework, "2", "cpu"))
    writer.record(LayerRecord("", "Net", "script.Net", leaf=False, training=True))
    kind = api.rpartition(".")[2]
    writer.record(LayerRecord("act", kind, api, leaf=True, training=True))
    for role, array in ((Role.INPUT, X), (Role.OUTPUT, output)):
        writer.add(EventKey(1, Phase.FORWARD, role, "act"), Values.of(array))
    writer.close(True, "")
    return str(path)


@pytest.mark.parametrize(
    ("api", "words"),
    [("mindspore.nn.Tanh", "only kernel accuracy"), ("script.Tanh", "code of its own")],
)
def test_a_small_unexplained_difference_says_what_it_can_be(
    tmp_path: Path, api: str, words: str
) -> None:
    y = np.tanh(X)
    ref = written(tmp_path / "ref.h5", "torch", "torch.nn.Tanh", y)
    port = written(tmp_path / "port.h5", "mindspore", api, y * OFF)
    report = paritydbg.diff(ref, port)
    assert report.exit_code == 0
    (suspect,) = report.suspects
    assert words in suspect.summary
    assert "3.0e-05 of its size" in suspect.summary
    assert exit_code(["bisect", ref, port]) == 0
    assert exit_code(["bisect", ref, port, "--strict"]) == 1
    assert exit_code(["diff", ref, port, "--strict"]) == 1


def test_strict_changes_nothing_where_all_agrees(tmp_path: Path) -> None:
    ref = written(tmp_path / "ref.h5", "torch", "torch.nn.Tanh", np.tanh(X))
    assert exit_code(["bisect", ref, ref, "--strict"]) == 0
