"""A ReLU whose input rounding carried over zero, in float32 and in 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paritydbg
from paritydbg.dump.writer import DumpWriter
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment, LayerRecord

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=960)
G = DRAW.normal(size=960)


def written(path: Path, dtype: str, zero: float, error: float) -> None:
    """One ReLU whose first input lies at ``zero``, in a run whose values are off by ``error``."""
    x = np.array(X * (1 + error * np.sign(DRAW.normal(size=960))), dtype)
    x[0] = zero
    y = np.maximum(x, 0)
    g = np.array(G * (1 + error * np.sign(DRAW.normal(size=960))), dtype)
    writer = DumpWriter(str(path), Environment("torch", "2", "cpu"))
    for name, kind in (("", "Net"), ("relu", "ReLU")):
        writer.record(LayerRecord(name, kind, f"torch.nn.{kind}", leaf=bool(name), training=True))
    for phase, role, name, array in (
        (Phase.FORWARD, Role.INPUT, "relu", x),
        (Phase.FORWARD, Role.OUTPUT, "relu", y),
        (Phase.BACKWARD, Role.GRAD_OUTPUT, "relu", g),
        (Phase.BACKWARD, Role.GRAD_INPUT, "relu", np.where(x > 0, g, 0).astype(dtype)),
    ):
        writer.add(EventKey(1, phase, role, name), Values.of(array))
    writer.close(True, "")


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-7), ("float16", 1e-3)])
def test_one_flipped_element_is_a_kink(tmp_path: Path, dtype: str, error: float) -> None:
    written(tmp_path / "ref.h5", dtype, 1e-5, 0.0)
    written(tmp_path / "port.h5", dtype, -1e-5, error)
    report = paritydbg.diff(tmp_path / "ref.h5", tmp_path / "port.h5")
    assert report.exit_code == 0
    assert any("a kink" in comparison.reason for comparison in report.comparisons)


def test_a_gradient_that_is_off_everywhere_is_none(tmp_path: Path) -> None:
    written(tmp_path / "ref.h5", "float16", 1e-5, 0.0)
    written(tmp_path / "port.h5", "float16", 1e-5, 0.2)
    assert paritydbg.diff(tmp_path / "ref.h5", tmp_path / "port.h5").exit_code == 1
