"""The command line as a whole: help, version, and the exit codes of every ending."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from paritydbg.cli import main as entry
from paritydbg.cli.main import COMMANDS, cli, exit_code
from paritydbg.errors import UsageError


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([name, "--help"]) == 0
    assert f"paritydbg {name}" in capsys.readouterr().out


def test_every_option_of_every_command_says_what_it_does() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.name}"


def test_the_readme_documents_every_command() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"paritydbg {name}" in readme


def test_an_unknown_command_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["nonsense"]) == 2
    assert "No such command" in capsys.readouterr().err


def test_no_arguments_print_help() -> None:
    assert exit_code([]) in (0, 2)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("steps 'x' are not a range"), 2, "paritydbg: error: steps 'x' are not a range"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("oops"), 2, "internal error"),
    ],
)
def test_no_ending_reads_as_a_divergence(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(entry.cli, "main", fail)
    assert exit_code(["bisect"]) == code
    assert said in capsys.readouterr().err
