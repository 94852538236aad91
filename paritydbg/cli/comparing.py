"""What ``diff`` and ``bisect`` share: their common options, the comparison under a progress bar, output."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

    from paritydbg.model.report import Report
    from paritydbg.model.trial import Trial, TrialResult
    from paritydbg.report.table import Row

Command = TypeVar("Command", bound=Callable[..., Any])


def common_options(required: bool = True) -> Callable[[Command], Command]:
    """The arguments and options of every command that compares two dumps.

    Args:
        required: whether the two dumps must be given.
    """
    options = (
        click.argument("reference", metavar="REF", required=required),
        click.argument("port", metavar="PORT", required=required),
        click.option(
            "--map",
            "map_file",
            default=None,
            metavar="FILE",
            help="YAML or TOML file that names pairs of layers and parameters.",
        ),
        click.option(
            "--rename",
            "renames",
            multiple=True,
            metavar="OLD=NEW",
            help="A rename rule from the reference's names to the port's; repeatable.",
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Exit with 1 for suspects too (kernel accuracy and the like).",
        ),
        click.option(
            "--try/--no-try",
            "trying",
            default=True,
            show_default=True,
            help="Run the proposed replacements on the captured tensors, where MindSpore is installed.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON (schema versioned)."),
        click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown."),
        click.option(
            "--html",
            "html_file",
            default=None,
            metavar="FILE",
            help="Write the report as one page for a browser as well; it needs no network.",
        ),
    )

    def decorated(command: Command) -> Command:
        for decorate in reversed(options):
            command = decorate(command)
        return command

    return decorated


def compare(
    reference: str,
    port: str,
    map_file: str | None,
    renames: tuple[str, ...],
    forced: tuple[str, str] | None = None,
    stressed: tuple[str, str] | None = None,
    trying: bool = False,
) -> Report:
    """The report on two dumps, with a progress bar on stderr while it is made."""
    from rich.console import Console
    from rich.progress import Progress

    from paritydbg.pipeline import diff
    from paritydbg.session.trial_runner import run_trials
    from paritydbg.weights.rules import parse_rename

    rules = tuple(parse_rename(text) for text in renames)
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("comparing", total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        def run(framework: str, trials: Sequence[Trial]) -> Sequence[TrialResult]:
            bar.update(task, description=f"trying {len(trials)} replacements", total=None)
            return run_trials(framework, trials)

        return diff(
            reference,
            port,
            map_file=map_file,
            rename=rules,
            forced=forced,
            stressed=stressed,
            progress=advance,
            run=run if trying else None,
        )


def compare_scripts(
    commands: tuple[str, str],
    folder: str,
    steps: str,
    no_dropout: bool,
    noise_runs: int,
    map_file: str | None,
    renames: tuple[str, ...],
    budget: int = 0,
    stress: bool = True,
    trying: bool = False,
) -> Report:
    """The report on two scripts, which are run in rounds; every round is told on stderr."""
    from paritydbg.rounds import run_rounds
    from paritydbg.session.order import LaunchOrder
    from paritydbg.weights.rules import parse_rename
    from paritydbg.window import refined

    order = LaunchOrder(
        out="",
        steps=steps,
        no_dropout=no_dropout,
        rename=tuple(parse_rename(text) for text in renames),
        stop=True,
    )
    reference, port = (_words(command) for command in commands)

    def tell(line: str) -> None:
        click.echo(f"paritydbg: {line}", err=True)

    made = run_rounds(
        reference,
        port,
        folder,
        order,
        runs=noise_runs,
        map_file=map_file,
        budget=budget,
        stress=stress,
        tell=tell,
    )
    sketched = compare(*made.sketches, map_file, renames) if made.sketches else None
    if sketched is not None and not made.port:
        return sketched
    replays = (made.reference_forced, made.port_forced)
    full = compare(made.reference, made.port, map_file, renames, replays, made.stressed, trying)
    return full if sketched is None else refined(sketched, full)


def rounds_in(folder: str) -> tuple[str, str, tuple[str, str] | None]:
    """The dumps that a bisection in rounds kept: both free runs, and both replays where they are there.

    Raises:
        UsageError: the folder holds no such dumps.
    """
    from paritydbg.errors import UsageError

    names = ("ref.h5", "port.h5", "ref.forced.h5", "port.forced.h5")
    paths = [os.path.join(folder, name) for name in names]
    if not all(os.path.isfile(path) for path in paths[:2]):
        raise UsageError(
            f"{folder} holds no ref.h5 and port.h5; name two dumps, or the folder of a bisection: "
            "--keep FOLDER"
        )
    replays = (paths[2], paths[3]) if all(os.path.isfile(path) for path in paths[2:]) else None
    return paths[0], paths[1], replays


def _words(command: str) -> list[str]:
    """A command line's words, as a shell splits them.

    Raises:
        UsageError: a quotation that does not end.
    """
    import shlex

    from paritydbg.errors import UsageError

    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{command!r} cannot be split into words: {error}") from error


def stdout() -> Console:
    """The console that results go to; plain and wide where it is no terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def exit_code(report: Report, strict: bool) -> int:
    """The report's exit code; with ``strict`` a suspect counts as a divergence."""
    return 1 if strict and report.suspects else report.exit_code


def check_html_file(path: str | None) -> None:
    """Refuse a page that could not be written, before any work is done.

    Raises:
        UsageError: its folder does not exist, or the path is a folder.
    """
    from paritydbg.errors import UsageError

    if path is None:
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"--html {path}: the folder {folder} does not exist; make it first")
    if os.path.isdir(path):
        raise UsageError(f"--html {path} is a folder; name a file in it: {path}/report.html")


def write_html(report: Report, path: str | None) -> None:
    """Write the report's page where one was asked for; a page that is there is replaced as a whole.

    Raises:
        UsageError: it cannot be written.
    """
    if path is None:
        return
    from paritydbg.errors import UsageError
    from paritydbg.report.html.page import to_html

    text = to_html(report)
    try:
        handle, part = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            # A temporary file is its owner's alone; a report is for others as well.
            os.chmod(part, 0o644)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise UsageError(f"--html {path} cannot be written: {error.strerror}") from error
    click.echo(f"paritydbg: wrote {path}", err=True)


def print_structured(
    report: Report, as_json: bool, as_markdown: bool, rows: tuple[Row, ...] = ()
) -> bool:
    """Print the report as JSON or Markdown if one was asked for, and say whether it was.

    Raises:
        UsageError: both were asked for.
    """
    from paritydbg.errors import UsageError

    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other; choose one")
    if as_json:
        from paritydbg.report.structured import to_json

        click.echo(to_json(report, every_pair=bool(rows)))
    elif as_markdown:
        from paritydbg.report.markdown import to_markdown

        click.echo(to_markdown(report, rows))
    return as_json or as_markdown
