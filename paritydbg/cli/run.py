"""``paritydbg run``: a script runs as it is, under capture."""

from __future__ import annotations

import click


@click.command(
    name="run",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    metavar="DUMP",
    help="The dump to write, for instance ref.h5.",
)
@click.option(
    "--steps",
    default="1-3",
    show_default=True,
    metavar="RANGE",
    help="Training steps to capture: 3, 1-3, 2- (to the end).",
)
@click.option(
    "--layer",
    "layers",
    multiple=True,
    metavar="GLOB",
    help="Only layers whose name fits, e.g. 'encoder.*'; repeatable.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    help="Only these roles (input, output, grad_output, grad, parameter …); repeatable.",
)
@click.option(
    "--model",
    default="",
    metavar="CLASS",
    help="The net's class, where the guess (the first net with parameters that is called) is wrong.",
)
@click.option(
    "--loss",
    default="",
    metavar="NAME",
    help="The loss function's or class's name, where the guess is wrong.",
)
@click.option(
    "--weights-from",
    default="",
    metavar="DUMP",
    help="Start from the initial weights in this dump (the reference's).",
)
@click.option(
    "--inputs-from",
    default="",
    metavar="DUMP",
    help="Feed the batches in this dump, step by step.",
)
@click.option(
    "--no-dropout",
    is_flag=True,
    help="Switch dropout off: two frameworks never draw the same masks. Give it on both sides.",
)
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="A rename rule from the reference's parameter names to this script's; repeatable.",
)
@click.argument(
    "command_line", nargs=-1, required=True, metavar="-- COMMAND…", type=click.UNPROCESSED
)
@click.pass_context
def command(
    ctx: click.Context,
    out: str,
    steps: str,
    layers: tuple[str, ...],
    roles: tuple[str, ...],
    model: str,
    loss: str,
    weights_from: str,
    inputs_from: str,
    no_dropout: bool,
    renames: tuple[str, ...],
    command_line: tuple[str, ...],
) -> int:
    """Run a training script with hooks on, and dump what it computes.

    The script is not touched. The net, its batch and labels, the loss and the steps are found
    by themselves; what was taken for each is printed. The script's own exit code is passed on;
    a script that ends well with nothing captured is exit code 2.

    \b
      paritydbg run -o ref.h5 -- python train_torch.py --epochs 1
      paritydbg run -o port.h5 --weights-from ref.h5 --inputs-from ref.h5 \\
          -- python train_mindspore.py

    With --weights-from and --inputs-from the port starts from the reference's weights and sees
    its batches, so that the first difference found is a real one. A MindSpore script in GRAPH
    mode, or with jit, is run in PyNative. With dropout in the nets, --no-dropout on both sides
    lets what lies behind it be compared; rates that differ are found from the layers' settings.
    """
    from paritydbg.session.launcher import run_script
    from paritydbg.session.order import LaunchOrder
    from paritydbg.weights.rules import parse_rename

    order = LaunchOrder(
        out=out,
        steps=steps,
        layers=layers,
        roles=roles,
        model=model,
        loss=loss,
        weights_from=weights_from,
        inputs_from=inputs_from,
        no_dropout=no_dropout,
        rename=tuple(parse_rename(text) for text in renames),
    )
    launched = run_script(command_line, order)
    if launched.captured:
        _tell(out, bool(weights_from or inputs_from))
    return launched.exit_code


def _tell(out: str, is_port: bool) -> None:
    """Say on stderr what was captured and what was taken for what."""
    from paritydbg.dump.reader import open_dump

    with open_dump(out) as dump:
        steps = sorted({event.key.step for event in dump.events})
        run = dump.run
        click.echo(
            f"paritydbg: {out}: {len(dump.events):,} events of step"
            f"{'s' if len(steps) > 1 else ''} {steps[0]}"
            + (f" to {steps[-1]}" if len(steps) > 1 else ""),
            err=True,
        )
        for taken in run.taken:
            click.echo(f"  {taken.what}: {taken.source}", err=True)
        for note in run.notes:
            click.echo(f"  note: {note}", err=True)
        for skipped in run.skipped[:10]:
            place = skipped.name or "(net)"
            click.echo(f"  not captured: {place} {skipped.role}: {skipped.reason}", err=True)
        if len(run.skipped) > 10:
            click.echo(f"  … {len(run.skipped) - 10} more; paritydbg show {out}", err=True)
        if not run.complete:
            click.echo(f"  incomplete: {run.ended or 'the run was cut short'}", err=True)
    if not is_port:
        click.echo(
            f"  next: paritydbg run -o port.h5 --weights-from {out} --inputs-from {out} "
            "-- python YOUR_PORT.py",
            err=True,
        )
