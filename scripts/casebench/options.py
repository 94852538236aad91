"""The command line that benches over cases share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from casebench.cases import Case, find_cases

Command = TypeVar("Command", bound=Callable[..., Any])


def case_options(command: Command) -> Command:
    """FOLDERS…, ``--json``, ``--jobs``, ``--timeout`` and ``-k``."""
    for decorate in reversed(
        (
            click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path)),
            click.option(
                "--json", "out", type=click.Path(path_type=Path), help="Write the results here."
            ),
            click.option(
                "--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes at once."
            ),
            click.option(
                "--timeout", default=300.0, show_default=True, help="Seconds a process may take."
            ),
            click.option(
                "-k", "patterns", multiple=True, help="Only cases whose name contains this."
            ),
        )
    ):
        command = decorate(command)
    return command


def chosen_cases(folders: Sequence[Path], patterns: Sequence[str]) -> tuple[Case, ...]:
    """The cases that a command line names.

    Raises:
        click.UsageError: a folder that does not exist or holds no case.
    """
    try:
        return find_cases([folder.resolve() for folder in folders], patterns)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
