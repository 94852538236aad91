"""Reproductions: folders whose two scripts show one finding alone, or a line that says why there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn as cells
from torch import nn

import paritydbg
from paritydbg.cli.main import exit_code
from paritydbg.errors import UsageError
from paritydbg.report.repro.scripts import slot_name

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)


class Twice(cells.Cell):
    """A person's own layer."""

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x * 2.5


class Double(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def dumps(
    folder: Path, act: nn.Module, cell: cells.Cell, rates: tuple[float, float] = (0.1, 0.1)
) -> list[str]:
    """Two dumps of a linear layer and an activation, trained for one step by SGD."""
    torch.manual_seed(0)
    net, port = nn.Sequential(nn.Linear(6, 3), act), cells.SequentialCell(cells.Dense(6, 3), cell)
    port[0].weight.set_data(ms.Tensor(net[0].weight.detach().numpy()))
    port[0].bias.set_data(ms.Tensor(net[0].bias.detach().numpy()))
    paths = [str(folder / name) for name in ("ref.h5", "port.h5")]
    optimizer = torch.optim.SGD(net.parameters(), rates[0])
    with paritydbg.capture(net, paths[0], optimizer=optimizer) as cap:
        loss = net(torch.from_numpy(X)).square().sum()
        cap.loss(loss)
        loss.backward()
        optimizer.step()
    port.set_train()
    sgd = cells.SGD(port.trainable_params(), rates[1])
    gradient = ms.value_and_grad(lambda x: port(x).square().sum(), None, sgd.parameters)
    with paritydbg.capture(port, paths[1], optimizer=sgd) as cap:
        loss, gradients = gradient(ms.Tensor(X))
        cap.loss(loss)
        sgd(gradients)
    return paths


def shown(folder: Path) -> list[tuple[int, str]]:
    """What each script says when nothing but its framework is there to help."""
    results = []
    for name in ("repro_torch.py", "repro_mindspore.py"):
        done = subprocess.run(
            [sys.executable, "-I", name], cwd=folder, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        results.append((done.returncode, done.stdout))
    return results


def test_a_layer_is_shown_forward_and_backward(tmp_path: Path) -> None:
    pair = dumps(tmp_path, nn.LeakyReLU(0.01), cells.LeakyReLU(0.2))
    out = tmp_path / "case"
    assert exit_code(["repro", "1", *pair, "-o", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "issue.md",
        "repro_mindspore.py",
        "repro_torch.py",
        "tensors.npz",
    ]
    for code, text in shown(out):
        assert code == 1
        assert [line.split(":")[0] for line in text.splitlines() if "DIFFERS" in line] == [
            "output",
            "gradient of input 0",
        ]
    issue = (out / "issue.md").read_text(encoding="utf-8")
    for words in ("mindspore.nn.LeakyReLU(alpha=0.2)", ms.__version__, "[4, 3]", "works", "1."):
        assert words in issue
    # With the reference's own line the difference is gone, and the script says so.
    script = out / "repro_mindspore.py"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace("alpha=0.2", "alpha=0.01"), encoding="utf-8")
    assert shown(out)[1][0] == 0


def test_an_optimizers_step_is_shown(tmp_path: Path) -> None:
    pair = dumps(tmp_path, nn.Tanh(), cells.Tanh(), (0.1, 0.3))
    out = tmp_path / "case"
    assert exit_code(["repro", "1", *pair, "-o", str(out)]) == 0
    assert all(code == 1 and "change of" in text for code, text in shown(out))


def test_an_anonymous_one_holds_none_of_the_captured_tensors(tmp_path: Path) -> None:
    pair = dumps(tmp_path, nn.LeakyReLU(0.01), cells.LeakyReLU(0.2))
    out = tmp_path / "case"
    assert exit_code(["repro", "1", *pair, "-o", str(out), "--anonymise"]) == 0
    assert all(code == 1 for code, _ in shown(out))
    with paritydbg.open_dump(pair[0]) as dump, np.load(out / "tensors.npz") as arrays:
        captured = [dump.load(event) for event in dump.events]
        for name in arrays.files:
            assert not any(np.array_equal(arrays[name], one) for one in captured), name
    assert str(tmp_path) not in (out / "issue.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("act", "cell", "words"),
    [
        (Double, Twice, "no layer of its framework"),
        (nn.Tanh, cells.Tanh, "no finding 1; the report has none"),
    ],
)
def test_what_cannot_be_shown_alone_is_one_line_and_no_folder(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    act: Callable[[], Any],
    cell: Callable[[], Any],
    words: str,
) -> None:
    pair = dumps(tmp_path, act(), cell())
    capsys.readouterr()
    assert exit_code(["repro", "1", *pair, "-o", str(tmp_path / "case")]) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert len(told) == 1
    assert words in told[0]
    assert not (tmp_path / "case").exists()


def test_folders_are_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    dumps_there = ["a.h5", "b.h5"]
    assert exit_code(["repro", "1", *dumps_there, "-o", str(tmp_path / "full")]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert exit_code(["repro", "1", *dumps_there, "-o", str(tmp_path / "no" / "case")]) == 2
    assert "make it first" in capsys.readouterr().err
    assert exit_code(["repro", "1", "--keep", str(tmp_path), "-o", str(tmp_path / "case")]) == 2
    assert "--keep FOLDER" in capsys.readouterr().err
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"


def test_a_slot_that_is_no_name_never_becomes_code(tmp_path: Path) -> None:
    from dataclasses import replace

    from paritydbg.pipeline import reproduce
    from paritydbg.report.repro.scripts import script
    from paritydbg.session.trial_runner import run_trials

    pair = dumps(tmp_path, nn.LeakyReLU(0.01), cells.LeakyReLU(0.2))
    made = reproduce(pair[0], pair[1], 1, run_trials)
    slot = '0"]); import os; print(["'
    hostile = replace(made, trial=replace(made.trial, inputs={slot: X}))
    with pytest.raises(UsageError, match="cannot be written"):
        script(hostile, "torch")
    assert slot_name("1.0") == "x1_0"
