"""``paritydbg diff``: every pair of tensors of two dumps in a table."""

from __future__ import annotations

import click

from paritydbg.cli.comparing import (
    check_html_file,
    common_options,
    compare,
    exit_code,
    print_structured,
    stdout,
    write_html,
)


@click.command(name="diff")
@common_options()
@click.option("--layer", "layers", multiple=True, metavar="GLOB", help="Only names that fit.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Only these roles.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(["forward", "backward", "update"]),
    help="Only these phases.",
)
@click.option("--step", "steps", multiple=True, type=int, metavar="N", help="Only these steps.")
@click.option(
    "--verdict", "verdicts", multiple=True, metavar="VERDICT", help="Only these verdicts."
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(["order", "worst", "name"]),
    default="order",
    show_default=True,
    help="Order of execution, worst first, or by name.",
)
@click.option("--limit", default=60, show_default=True, metavar="N", help="Rows to print.")
@click.option("--all", "everything", is_flag=True, help="Print every row.")
def command(
    reference: str,
    port: str,
    map_file: str | None,
    renames: tuple[str, ...],
    strict: bool,
    trying: bool,
    as_json: bool,
    as_markdown: bool,
    html_file: str | None,
    layers: tuple[str, ...],
    roles: tuple[str, ...],
    phases: tuple[str, ...],
    steps: tuple[int, ...],
    verdicts: tuple[str, ...],
    order: str,
    limit: int,
    everything: bool,
) -> int:
    """Compare every tensor of two dumps.

    One row per pair: relative L2, largest absolute difference, cosine, and how many times over
    what rounding allows it lies. A verdict is MATCH, DIVERGED (its inputs agree, it does not),
    INHERITED (its inputs differed already), SUSPECT (beyond rounding, too small to matter),
    SHAPE, DTYPE, NONFINITE or UNTESTED.

    \b
      paritydbg diff ref.h5 port.h5 --sort worst
      paritydbg diff ref.h5 port.h5 --layer 'encoder.*' --phase backward

    Exit code 0: parity. 1: a divergence was found (with --strict, a suspect too). 2: anything else.
    """
    from paritydbg.report.lines import coverage_text, headline
    from paritydbg.report.table import Choice, rows
    from paritydbg.report.terminal import print_table

    check_html_file(html_file)
    report = compare(reference, port, map_file, renames, trying=trying)
    choice = Choice(layers, roles, phases, tuple(v.upper() for v in verdicts), steps)
    chosen = rows(report.comparisons, choice, order)  # type: ignore[arg-type] # click checked it
    write_html(report, html_file)
    if not print_structured(report, as_json, as_markdown, chosen):
        console = stdout()
        print_table(chosen, console, None if everything else limit)
        console.print(headline(report), soft_wrap=True, markup=False)
        console.print(coverage_text(report) + ".", soft_wrap=True, markup=False)
    return exit_code(report, strict)
