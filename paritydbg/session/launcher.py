"""Starts a user's script under capture, untouched, and tells what came of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paritydbg.dump.reader import open_dump
from paritydbg.errors import NothingCapturedError, UsageError
from paritydbg.session.order import VARIABLE, LaunchOrder

BOOT = Path(__file__).with_name("boot")


@dataclass(frozen=True)
class Launched:
    """What came of a launched script.

    Attributes:
        exit_code: the script's own.
        captured: whether a dump was written by it.
    """

    exit_code: int
    captured: bool


def run_script(command: Sequence[str], order: LaunchOrder, *, aside: bool = False) -> Launched:
    """Run the command with capture in every Python process of it, and wait for its end.

    Args:
        command: ``("python", "train.py", "--lr", "0.1")``.
        order: what to capture; checked here, so that mistakes show before the script starts.
        aside: whether what the script prints goes to stderr, out of the way of a report.

    Raises:
        UsageError: the program does not exist, a Python started with ``-I``, ``-E`` or ``-S`` (which
            ignore the capture), or an option of the order that cannot be used.
        NothingCapturedError: the script succeeded, and nothing was captured.
        DumpError: a dump to start from cannot be read.
    """
    _check(command, order)
    before = _identity(order.out)
    claims = tempfile.mkdtemp(prefix="paritydbg-")
    try:
        told = replace(order, command=" ".join(command), claims=claims)
        out = sys.stderr if aside else None
        code = _wait(subprocess.Popen(list(command), env=_environment(told), stdout=out))
    finally:
        shutil.rmtree(claims, ignore_errors=True)
    captured = _identity(order.out) != before
    if code == 0 and not captured:
        raise NothingCapturedError(
            f"{' '.join(command)} ended well, but nothing was captured: no net with parameters was "
            f"called in steps {order.steps}"
            + (f" (looked only for --model {order.model})" if order.model else "")
            + ". Is it a torch or mindspore training script? Name the net's class with --model"
        )
    return Launched(code, captured)


def _check(command: Sequence[str], order: LaunchOrder) -> None:
    if not command:
        raise UsageError("no command was given; write: paritydbg run -o ref.h5 -- python train.py")
    if shutil.which(command[0]) is None:
        raise UsageError(
            f"{command[0]} is no program here; write: paritydbg run … -- python train.py"
        )
    flags = _interpreter_flags(command)
    for letter in "IES":
        if letter in flags:
            raise UsageError(
                f"python -{letter} ignores the environment that capture needs; leave -{letter} away"
            )
    order.plan()
    for start in (order.weights_from, order.inputs_from):
        if start and os.path.realpath(start) == os.path.realpath(order.out):
            raise UsageError(f"{start} would be overwritten while it is read; give -o another name")
        if start:
            open_dump(start).close()
    folder = os.path.dirname(os.path.abspath(order.out))
    if not os.path.isdir(folder):
        raise UsageError(f"the folder of {order.out} does not exist; make it: mkdir -p {folder}")


def _interpreter_flags(command: Sequence[str]) -> str:
    """Letters of the one-letter options that a Python interpreter in front of the command gets."""
    if not os.path.basename(command[0]).startswith("python"):
        return ""
    letters = ""
    for word in command[1:]:
        if not word.startswith("-") or word in ("-m", "-c", "-"):
            break
        letters += "" if word.startswith("--") else word[1:]
    return letters


def _environment(order: LaunchOrder) -> dict[str, str]:
    environment = dict(os.environ)
    environment[VARIABLE] = order.encoded()
    path = [str(BOOT)]
    if environment.get("PYTHONPATH"):
        path.append(environment["PYTHONPATH"])
    environment["PYTHONPATH"] = os.pathsep.join(path)
    # MindSpore reads it at import: jit-decorated functions then run operator by operator, so that
    # hooks see the layers inside.
    environment.setdefault("MS_JIT", "0")
    # torch.compile likewise: a compiled net calls none of its layers.
    environment.setdefault("TORCHDYNAMO_DISABLE", "1")
    return environment


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The exit code; an interrupt reaches the script by the terminal, here it is only waited for."""
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            continue
    # Killed by a signal: the shell's convention.
    return 128 - code if code < 0 else code


def _identity(path: str) -> tuple[int, int, int] | None:
    """What tells one written file from the next at the same path."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
