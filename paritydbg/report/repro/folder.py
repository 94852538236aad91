"""Writes a reproduction's folder: all of it, or nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.errors import UsageError
from paritydbg.measure.layer_noise import gradient_rounding
from paritydbg.model.handover import Handover
from paritydbg.report.repro.issue import issue_text
from paritydbg.report.repro.scripts import script
from paritydbg.weights.archives import write_npz


def check_folder(path: str) -> None:
    """Refuse a folder that cannot be written, before any work is done.

    Raises:
        UsageError: it exists and is no empty folder, or what should hold it does not exist.
    """
    if os.path.isdir(path):
        if os.listdir(path):
            raise UsageError(f"{path} is not empty; name a folder that is not there yet")
    elif os.path.lexists(path):
        raise UsageError(f"{path} is a file; name a folder that is not there yet")
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise UsageError(f"{path}: the folder {parent} does not exist; make it first")


def write_folder(handover: Handover, path: str) -> None:
    """Write scripts, tensors and text to a folder that is not there yet.

    Raises:
        UsageError: it cannot be written.
    """
    check_folder(path)
    whole = os.path.abspath(path)
    try:
        part = tempfile.mkdtemp(prefix=".repro-", dir=os.path.dirname(whole))
        try:
            for package in ("torch", "mindspore"):
                _write(part, f"repro_{package}.py", script(handover, package))
            _write(part, "issue.md", issue_text(handover))
            write_npz(os.path.join(part, "tensors.npz"), tensors(handover))
            os.chmod(part, 0o755)
            if os.path.isdir(whole):
                os.rmdir(whole)
            os.rename(part, whole)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def tensors(handover: Handover) -> dict[str, NDArray[Any]]:
    """Everything that the scripts read, by the names they read it under."""
    trial = handover.trial
    found = {f"inputs/{slot}": array for slot, array in trial.inputs.items()}
    found |= {f"grad_outputs/{slot}": array for slot, array in trial.grad_outputs.items()}
    for package, side in (("torch", handover.reference), ("mindspore", handover.port)):
        kinds = {
            "values": side.values,
            "gradients": side.gradients,
            "expected.outputs": side.expected.outputs,
            "expected.grad_inputs": side.expected.grad_inputs,
            "expected.gradients": side.expected.gradients,
            "expected.values": side.expected.values,
        }
        for kind, arrays in kinds.items():
            for name, array in arrays.items():
                key = f"{package}.{kind}/{name}"
                found[key] = np.asarray(array)
                if "grad" in kind.partition(".")[2]:
                    given = trial.grad_outputs.values(), trial.inputs.values()
                    found[f"allowed.{key}"] = np.array(gradient_rounding(array, *given))
    return found


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
