"""``paritydbg bisect``: the first divergence of two dumps, why, and what to write instead."""

from __future__ import annotations

import click

from paritydbg.cli.comparing import common_options, compare, print_structured, stdout


@click.command(name="bisect")
@common_options
def command(
    reference: str,
    port: str,
    map_file: str | None,
    renames: tuple[str, ...],
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Name the first layer where the port parts from the reference.

    The dumps are scanned in the order of execution: inputs and weights, the first step's
    forward pass and loss, its backward pass in reverse, the update, running statistics and
    other state, then later steps. What comes first and is not explained by what went into it
    is the finding: which layer, by how much against what rounding allows, the likely cause,
    and what could be written instead.

    \b
      paritydbg bisect ref.h5 port.h5
      paritydbg bisect ref.h5 port.h5 --json | jq .findings[0].place

    Exit code 0: parity. 1: a divergence was found. 2: anything else.
    """
    report = compare(reference, port, map_file, renames)
    if not print_structured(report, as_json, as_markdown):
        from paritydbg.report.terminal import print_report

        print_report(report, stdout())
    return report.exit_code
