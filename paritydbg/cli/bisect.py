"""``paritydbg bisect``: the first divergence of two runs, why, and what to write instead."""

from __future__ import annotations

import click

from paritydbg.cli.comparing import (
    check_html_file,
    common_options,
    compare,
    compare_scripts,
    exit_code,
    print_structured,
    stdout,
    write_html,
)


@click.command(name="bisect")
@common_options(required=False)
@click.option(
    "--forced",
    nargs=2,
    default=None,
    metavar="REF.FORCED PORT.FORCED",
    help="Forced replays of both sides: each layer is judged on the reference's own inputs.",
)
@click.option(
    "--stressed",
    nargs=2,
    default=None,
    metavar="REF.STRESS PORT.STRESS",
    help="Replays of both sides on smaller inputs: what parts there alone is reported as latent.",
)
@click.option(
    "--reference",
    "reference_command",
    default="",
    metavar="CMD",
    help="Run this script as the reference, e.g. 'python train_torch.py'; with --port.",
)
@click.option(
    "--port", "port_command", default="", metavar="CMD", help="Run this script as the port."
)
@click.option(
    "--keep",
    "folder",
    default="parity",
    show_default=True,
    metavar="FOLDER",
    help="Where the dumps of --reference and --port are kept; what did not change is not run again.",
)
@click.option("--steps", default="1", show_default=True, metavar="RANGE", help="Steps to capture.")
@click.option("--no-dropout", is_flag=True, help="Switch dropout off in both scripts.")
@click.option(
    "--noise-runs",
    default=3,
    show_default=True,
    type=click.IntRange(0, 20),
    help="Perturbed replays of the reference that tell its noise; 0 to model it.",
)
@click.option(
    "--stress/--no-stress",
    default=True,
    show_default=True,
    help="Feed every layer smaller inputs as well, which shows epsilons that rounding hides.",
)
@click.option(
    "--budget",
    default="",
    metavar="SIZE",
    help="For nets too big to dump (e.g. 500MB): sketches first, then full tensors around the boundary.",
)
def command(
    reference: str | None,
    port: str | None,
    map_file: str | None,
    renames: tuple[str, ...],
    strict: bool,
    trying: bool,
    as_json: bool,
    as_markdown: bool,
    html_file: str | None,
    forced: tuple[str, str] | None,
    stressed: tuple[str, str] | None,
    reference_command: str,
    port_command: str,
    folder: str,
    steps: str,
    no_dropout: bool,
    noise_runs: int,
    stress: bool,
    budget: str,
) -> int:
    """Name the first layer where the port parts from the reference.

    Given two dumps, they are scanned in the order of execution: inputs and weights, the first
    step's forward pass and loss, its backward pass in reverse, the update, running statistics
    and other state, then later steps. What comes first and is not explained by what went into
    it is the finding: which layer, by how much against what rounding allows, the likely cause,
    and what could be written instead.

    \b
      paritydbg bisect ref.h5 port.h5
      paritydbg bisect ref.h5 port.h5 --html report.html
      paritydbg bisect ref.h5 port.h5 --json | jq .findings[0].place

    Given two scripts, they are run in rounds: the reference, its noise, the port from the same
    start, and the port again with every layer fed the reference's values. All faults are found
    at once, and each layer's own error is told from what came in.

    \b
      paritydbg bisect --reference 'python train_torch.py' --port 'python train_mindspore.py'

    Exit code 0: parity. 1: a divergence was found (with --strict, a suspect too). 2: anything else.
    """
    from paritydbg.errors import UsageError
    from paritydbg.window import parse_bytes

    check_html_file(html_file)
    if budget and not reference_command:
        raise UsageError("--budget goes with --reference and --port: dumps are there already")
    if bool(reference_command) != bool(port_command):
        raise UsageError("--reference and --port go together; give both scripts")
    if reference_command and (reference or port):
        raise UsageError("give two dumps, or --reference and --port, not both")
    if reference_command:
        report = compare_scripts(
            (reference_command, port_command),
            folder,
            steps,
            no_dropout,
            noise_runs,
            map_file,
            renames,
            parse_bytes(budget) if budget else 0,
            stress,
            trying,
        )
    elif reference is None or port is None:
        raise UsageError(
            "give two dumps (paritydbg bisect ref.h5 port.h5), or two scripts with --reference and --port"
        )
    else:
        report = compare(reference, port, map_file, renames, forced, stressed, trying)
    write_html(report, html_file)
    if not print_structured(report, as_json, as_markdown):
        from paritydbg.report.terminal import print_report

        print_report(report, stdout())
    return exit_code(report, strict)
