"""``paritydbg repro``: one finding as two small scripts, their tensors, and a text to send."""

from __future__ import annotations

import os

import click


@click.command(name="repro", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("finding", type=click.IntRange(1), metavar="FINDING")
@click.argument("reference", metavar="[REF]", required=False)
@click.argument("port", metavar="[PORT]", required=False)
@click.option("-o", "--out", required=True, metavar="FOLDER", help="The folder to make.")
@click.option(
    "--keep",
    "kept",
    default="parity",
    show_default=True,
    metavar="FOLDER",
    help="Where bisect --reference --port kept its dumps; taken where no dumps are named.",
)
@click.option(
    "--forced",
    nargs=2,
    default=None,
    metavar="REF.FORCED PORT.FORCED",
    help="Forced replays of both sides, where the finding was made with them.",
)
@click.option(
    "--map",
    "map_file",
    default=None,
    metavar="FILE",
    help="YAML or TOML file that names pairs of layers and parameters.",
)
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="A rename rule from the reference's names to the port's; repeatable.",
)
@click.option(
    "--anonymise",
    "anonymous",
    is_flag=True,
    help="Draw other tensors that still show it, and leave out every name of your net.",
)
def command(
    finding: int,
    reference: str | None,
    port: str | None,
    out: str,
    kept: str,
    forced: tuple[str, str] | None,
    map_file: str | None,
    renames: tuple[str, ...],
    anonymous: bool,
) -> int:
    """Make a folder that shows one finding alone, for the framework's maintainers.

    FINDING is its number in the report. The folder holds repro_torch.py and repro_mindspore.py, which
    need nothing but their framework and numpy, tensors.npz with the captured inputs, and issue.md
    with versions, shapes, errors and what was tried. Both layers are run before anything is written:
    where the difference does not show in the layer alone, that is said instead.

    \b
      paritydbg repro 1 ref.h5 port.h5 -o gelu-differs
      paritydbg repro 2 --keep parity -o case --anonymise

    Exit code 0: the folder was written. 2: it was not, and why.
    """
    from paritydbg.cli.comparing import rounds_in
    from paritydbg.errors import UsageError
    from paritydbg.pipeline import reproduce
    from paritydbg.report.repro.folder import check_folder, write_folder
    from paritydbg.session.trial_runner import run_trials
    from paritydbg.weights.rules import parse_rename

    if (reference is None) != (port is None):
        raise UsageError("give both dumps (paritydbg repro 1 ref.h5 port.h5 -o FOLDER), or none")
    check_folder(out)
    if reference is None or port is None:
        reference, port, forced = rounds_in(kept)
    made = reproduce(
        reference,
        port,
        finding,
        run_trials,
        map_file=map_file,
        rename=tuple(parse_rename(text) for text in renames),
        forced=forced,
        anonymous=anonymous,
    )
    write_folder(made, out)
    worst = max(error for _, error, _ in made.errors)
    click.echo(
        f"{out}: shows a relative difference of {worst:.1e}; run python repro_mindspore.py there"
    )
    if anonymous:
        click.echo("inputs and weights were drawn; look through issue.md before you send it")
    click.echo(f"next: read {os.path.join(out, 'issue.md')}")
    return 0
