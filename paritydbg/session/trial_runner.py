"""Runs trials in a process of their own: a kernel that crashes or hangs takes nothing else with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.errors import WeightsError
from paritydbg.model.trial import Trial, TrialResult
from paritydbg.weights.archives import read_npz, write_npz

# Starting a framework takes seconds, a trial milliseconds; a compiler may take longer once.
_START_SECONDS = 120.0
_SECONDS = 60.0
# Names that a result is stored under, by the fields of `TrialResult`.
MAPPINGS = ("outputs", "grad_inputs", "gradients", "values")
_ERROR_LENGTH = 300


def run_trials(
    framework: str, trials: Sequence[Trial], seconds: float = _SECONDS
) -> tuple[TrialResult, ...]:
    """What every trial gave, in order; empty where the framework is not installed.

    A trial that ends its process, or takes too long, has an error that says so; the others are run in
    another process.

    Args:
        seconds: that each trial may take, beside the start of the framework.
    """
    if not trials or find_spec(framework) is None:
        return ()
    results: dict[int, TrialResult] = {}
    with tempfile.TemporaryDirectory(prefix="paritydbg-") as folder:
        for number, trial in enumerate(trials):
            write_trial(trial, folder, number)
        while len(results) < len(trials):
            first = len(results)
            ended = _run(framework, folder, first, len(trials), seconds)
            for number in range(first, len(trials)):
                found = read_result(folder, number)
                if found is None:
                    results[number] = TrialResult(error=ended)
                    break
                results[number] = found
    return tuple(results[number] for number in range(len(trials)))


def _run(framework: str, folder: str, first: int, last: int, seconds: float) -> str:
    """Run the trials from ``first`` on; why the process ended before it had finished them."""
    command = [sys.executable, "-m", "paritydbg.session.trial_child", framework, folder]
    # A bootstrap in the environment would capture the trial.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PARITYDBG_")}
    limit = _START_SECONDS + seconds * (last - first)
    try:
        done = subprocess.run(
            [*command, str(first), str(last)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {seconds:.0f} s"
    if done.returncode < 0:
        return f"it ended the process with signal {-done.returncode}"
    told = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (told[-1] if told else f"it ended the process with code {done.returncode}")[
        :_ERROR_LENGTH
    ]


def write_trial(trial: Trial, folder: str, number: int) -> None:
    """Write a trial as JSON and an archive of plain arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    for name in ("values", "inputs", "grad_outputs", "gradients"):
        for key, array in getattr(trial, name).items():
            arrays[f"{name}/{key}"] = np.asarray(array)
    told = {
        "call": asdict(trial.call),
        "layer": None if trial.layer is None else asdict(trial.layer),
        "parameters": [asdict(one) for one in trial.parameters],
        "training": trial.training,
    }
    write_npz(os.path.join(folder, f"trial{number}.npz"), arrays)
    with open(os.path.join(folder, f"trial{number}.json"), "w", encoding="utf-8") as file:
        json.dump(told, file)


def read_result(folder: str, number: int) -> TrialResult | None:
    """What a trial gave, None where it left nothing."""
    path = os.path.join(folder, f"result{number}.npz")
    try:
        with open(os.path.join(folder, f"result{number}.json"), encoding="utf-8") as file:
            error = str(json.load(file)["error"])
        if error:
            return TrialResult(error=error[:_ERROR_LENGTH])
        arrays = read_npz(path)
    except (OSError, ValueError, KeyError, WeightsError):
        return None
    outputs, grad_inputs, gradients, values = (
        {k[len(name) + 1 :]: a for k, a in arrays.items() if k.startswith(f"{name}/")}
        for name in MAPPINGS
    )
    return TrialResult(outputs, grad_inputs, gradients, values)
