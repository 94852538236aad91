"""Trials run in processes of their own, in both frameworks; one that dies is one result."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from paritydbg.model.record import LayerRecord, ParameterRecord
from paritydbg.model.trial import Call, Trial
from paritydbg.session import trial_runner
from paritydbg.session.slots import arguments_of
from paritydbg.session.trial_runner import run_trials

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(5, 3)).astype(np.float32)
W = RANDOM.normal(size=(4, 3)).astype(np.float32)
B = RANDOM.normal(size=4).astype(np.float32)
G = RANDOM.normal(size=(5, 4)).astype(np.float32)


def linear(call: Call) -> Trial:
    return Trial(
        call,
        LayerRecord("", "Linear", "torch.nn.Linear", True, True, parameters=("weight", "bias")),
        (
            ParameterRecord("weight", "", (4, 3), "float32", True),
            ParameterRecord("bias", "", (4,), "float32", True),
        ),
        {"weight": W, "bias": B},
        {"0": X},
        {"": G},
    )


def norm(call: Call) -> Trial:
    """A batch norm; its running statistics come back as well."""
    shapes = {"weight": True, "bias": True, "running_mean": False, "running_var": False}
    records = tuple(
        ParameterRecord(n, "", (3,), "float32", trains, not trains) for n, trains in shapes.items()
    )
    layer = LayerRecord("", "BatchNorm1d", "torch.nn.BatchNorm1d", True, True, (), tuple(shapes))
    values = {n: np.linspace(1, 2, 3, dtype=np.float32) for n in shapes}
    return Trial(call, layer, records, values, {"0": X}, {"": X})


LINEAR = {
    "torch": Call("torch.nn.Linear", (3, 4)),
    "mindspore": Call("mindspore.nn.Dense", (3, 4)),
}
NORM = {
    "torch": Call("torch.nn.BatchNorm1d", (3,), (("momentum", 0.2),)),
    "mindspore": Call("mindspore.nn.BatchNorm1d", (3,), (("momentum", 0.8),)),
}
SGD = {
    "torch": Call("torch.optim.SGD", (), (("lr", 0.5),), True),
    "mindspore": Call("mindspore.nn.SGD", (), (("learning_rate", 0.5),), True),
}


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_layers_and_optimizers_give_what_they_compute(framework: str) -> None:
    records = linear(LINEAR[framework]).parameters
    optimizer = Trial(
        SGD[framework], None, records, {"weight": W, "bias": B}, gradients={"weight": W, "bias": B}
    )
    wrong = linear(Call(f"{framework}.nn.Nothing"))
    trials = [linear(LINEAR[framework]), wrong, norm(NORM[framework]), optimizer]
    first, second, third, last = run_trials(framework, trials)
    assert first.error == ""
    assert np.allclose(first.outputs[""], X @ W.T + B, atol=1e-5)
    assert np.allclose(first.grad_inputs["0"], G @ W, atol=1e-5)
    assert np.allclose(first.gradients["weight"], G.T @ X, atol=1e-5)
    assert np.allclose(first.gradients["bias"], G.sum(0), atol=1e-5)
    assert "is not in" in second.error
    mean = 0.8 * np.linspace(1, 2, 3) + 0.2 * X.mean(0)
    assert np.allclose(third.values["running_mean"], mean, atol=1e-5)
    assert set(third.gradients) == {"weight", "bias"}
    assert np.allclose(last.values["weight"], 0.5 * W, atol=1e-6)


def test_only_the_frameworks_own_apis_are_looked_up() -> None:
    (result,) = run_trials("torch", [linear(Call("os.system", ("true",)))])
    assert "no API of torch" in result.error


def test_a_trial_that_ends_its_process_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A python whose second trial kills it: every other one leaves a result.
    fake = tmp_path / "python"
    fake.write_text(
        f"#!{sys.executable}\n"
        "import json, os, signal, sys\n"
        "folder, first, last = sys.argv[4], int(sys.argv[5]), int(sys.argv[6])\n"
        "for n in range(first, last):\n"
        "    if n == 1:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    with open(f'{folder}/result{n}.json', 'w') as file:\n"
        "        json.dump({'error': f'ran {n}'}, file)\n"
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(trial_runner.sys, "executable", str(fake))
    results = run_trials("torch", [linear(LINEAR["torch"])] * 4)
    assert [r.error for r in results] == [
        "ran 0",
        "it ended the process with signal 9",
        "ran 2",
        "ran 3",
    ]


def test_a_framework_that_is_not_there_gives_nothing() -> None:
    assert run_trials("no_such_framework", [linear(LINEAR["torch"])]) == ()


def test_slots_become_arguments() -> None:
    slots = {"0": "a", "1.0": "b", "1.1": "c", "3": "d", "mask": "m", "cache.k": "e"}
    assert arguments_of(slots) == (("a", ("b", "c"), None, "d"), {"mask": "m", "cache": {"k": "e"}})
    assert arguments_of({}) == ((), {})
