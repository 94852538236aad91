"""Scripts that know nothing of paritydbg, run under it from the command line, in both frameworks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import paritydbg
from paritydbg.dump.reader import Dump

ROOT = Path(__file__).resolve().parents[2]


def paritydbg_run(
    folder: Path, out: str, *options: str, script: list[str]
) -> subprocess.CompletedProcess[str]:
    """``paritydbg run -o OUT OPTIONS -- python SCRIPT…`` in the folder."""
    command = [sys.executable, "-m", "paritydbg", "run", "-o", out, *options, "--"]
    return subprocess.run(
        [*command, sys.executable, *script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "GLOG_v": "3"},
    )


def ran(folder: Path, out: str, *options: str, script: list[str]) -> Dump:
    done = paritydbg_run(folder, out, *options, script=script)
    assert done.returncode == 0, done.stderr[-3000:]
    return paritydbg.open_dump(folder / out)


def steps(dump: Dump) -> list[int]:
    return sorted({event.key.step for event in dump.events})


TORCH_LOOP = """
import sys
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", enabled="amp" in sys.argv)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    net.train()
    for _ in range(3):
        x, y = torch.randn(4, 8), torch.randint(0, 4, (4,))
        optimizer.zero_grad()
        with torch.autocast("cpu", enabled="amp" in sys.argv):
            loss = criterion(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(float(loss))
    net.eval()
    with torch.no_grad():
        net(torch.randn(4, 8))
if "fail" in sys.argv:
    sys.exit(3)
"""


@pytest.mark.parametrize("mode", ["plain", "amp"])
def test_a_torch_loop_is_found_and_left_as_it_is(tmp_path: Path, mode: str) -> None:
    (tmp_path / "train.py").write_text(TORCH_LOOP)
    script = ["train.py", mode]
    alone = subprocess.run(
        [sys.executable, *script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    done = paritydbg_run(tmp_path, "a.h5", "--steps", "1-4", script=script)
    assert done.returncode == 0, done.stderr
    # The same numbers to the last bit, dropout included.
    assert done.stdout == alone.stdout
    with paritydbg.open_dump(tmp_path / "a.h5") as dump:
        assert steps(dump) == [1, 2, 3, 4]
        roles = {event.key.role.value for event in dump.events}
        assert roles >= {"batch", "loss", "input", "output", "grad", "grad_applied", "parameter"}
        batch = {e.key.name for e in dump.events if e.key.role.value == "batch"}
        assert batch == {"0", "label"}
        losses = [float(dump.load(e)) for e in dump.events if e.key.role.value == "loss"]
        assert losses == pytest.approx([float(line) for line in alone.stdout.split()[:4]])
        assert {taken.what for taken in dump.run.taken} == {"net", "batch 0", "label", "loss"}
        assert any("validation" in note for note in dump.run.notes)
        assert dump.run.complete


def test_the_scripts_own_exit_code_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TORCH_LOOP)
    assert paritydbg_run(tmp_path, "a.h5", script=["train.py", "fail"]).returncode == 3
    assert (tmp_path / "a.h5").exists()


def test_a_script_that_raises_leaves_a_dump_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        TORCH_LOOP.replace("net.eval()", "raise RuntimeError('boom')")
    )
    done = paritydbg_run(tmp_path, "a.h5", "--steps", "1-9", script=["train.py"])
    assert done.returncode == 1
    assert "RuntimeError: boom" in done.stderr
    with paritydbg.open_dump(tmp_path / "a.h5") as dump:
        assert steps(dump) == [1, 2, 3]
        assert "RuntimeError: boom" in dump.run.ended


def test_dropout_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TORCH_LOOP)
    with ran(tmp_path, "a.h5", "--no-dropout", "--steps", "1", script=["train.py"]) as dump:
        values = {
            event.key.role.value: dump.load(event)
            for event in dump.events
            if event.key.name == "2" and event.key.role.value in ("input", "output")
        }
        assert (values["input"] == values["output"]).all()


MINDSPORE_LOOP = """
import sys
import mindspore as ms, numpy as np
from mindspore import Tensor, nn
from mindspore.dataset import GeneratorDataset
from mindspore.train import FixedLossScaleManager, Model
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
# A schedule is a cell that the optimizer calls.
optimizer = nn.Momentum(net.trainable_params(), [0.01] * 6, 0.9)
criterion = nn.CrossEntropyLoss()
source = np.random.default_rng(0)
batches = [
    (source.standard_normal((4, 8)).astype(np.float32), source.integers(0, 4, 4).astype(np.int32))
    for _ in range(3)
]
way = sys.argv[1]
if way == "grad":
    gradient_of = ms.grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)
    net.set_train()

    @ms.jit
    def step(x, y):
        optimizer(gradient_of(x, y))

    for x, y in batches:
        step(Tensor(x), Tensor(y))
    net.set_train(False)
    net(Tensor(batches[0][0]))
else:
    scale = FixedLossScaleManager(1.0, drop_overflow_update=False)
    model = Model(net, criterion, optimizer, amp_level=way, loss_scale_manager=scale)
    data = GeneratorDataset(lambda: iter(batches), ["x", "y"], shuffle=False)
    model.train(1, data, dataset_sink_mode=False)
"""


@pytest.mark.parametrize("way", ["grad", "O0", "O1", "O2", "O3"])
def test_the_usual_ways_to_train_in_mindspore_are_found(tmp_path: Path, way: str) -> None:
    (tmp_path / "train.py").write_text(MINDSPORE_LOOP)
    with ran(tmp_path, "a.h5", script=["train.py", way]) as dump:
        assert steps(dump) == [1, 2, 3]
        assert {layer.name for layer in dump.run.layers} == {"", "0", "1", "2"}
        assert [taken.what for taken in dump.run.taken].count("net") == 1
        outputs = {e.key.name for e in dump.events if e.key.role.value == "output"}
        assert outputs == {"", "0", "1", "2"}
        gradients = {e.key.name for e in dump.events if e.key.role.value == "grad_applied"}
        assert gradients == {"0.weight", "0.bias", "2.weight", "2.bias"}
        losses = [e for e in dump.events if e.key.role.value == "loss"]
        assert len(losses) == 3
        batch = {e.key.name for e in dump.events if e.key.role.value == "batch"}
        assert batch == {"0", "label"}
        assert any("GRAPH mode" in note for note in dump.run.notes)
        if way == "grad":
            assert any("validation" in note for note in dump.run.notes)


@pytest.mark.parametrize("mode", ["value_and_grad", "train_one_step", "model"])
def test_a_port_starts_as_its_reference_and_reaches_parity(tmp_path: Path, mode: str) -> None:
    train = ROOT / "scripts"
    ran(
        tmp_path, "ref.h5", "--steps", "1-2", script=[str(train / "train_torch.py"), "lenet5"]
    ).close()
    start = ("--steps", "1-2", "--weights-from", "ref.h5", "--inputs-from", "ref.h5")
    script = [str(train / "train_mindspore.py"), "lenet5", "--mode", mode, "--seed", "5"]
    ran(tmp_path, "port.h5", *start, script=script).close()
    report = paritydbg.diff(tmp_path / "ref.h5", tmp_path / "port.h5")
    assert report.findings == ()
    assert report.coverage.share > 0.95


def test_a_batch_of_another_kind_is_refused_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(TORCH_LOOP)
    (tmp_path / "other.py").write_text(
        TORCH_LOOP.replace("torch.randn(4, 8)", "torch.randn(4, 2, 8)")
    )
    ran(tmp_path, "ref.h5", script=["one.py"]).close()
    done = paritydbg_run(tmp_path, "port.h5", "--inputs-from", "ref.h5", script=["other.py"])
    assert done.returncode == 2
    assert "leave --inputs-from away" in done.stderr.splitlines()[-1]
