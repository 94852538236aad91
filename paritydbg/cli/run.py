"""``paritydbg run``: a script runs as it is, under capture."""

from __future__ import annotations

from dataclasses import replace

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
    "--forced-by",
    default="",
    metavar="DUMP",
    help="Forced replay: every layer is given the values in this dump (the reference's), forward "
    "and backward, so that each layer's own error is seen.",
)
@click.option(
    "--free",
    default="",
    metavar="DUMP",
    help="With --forced-by: a free run of this script; it is made first, and dropped, if not given.",
)
@click.option(
    "--noise",
    is_flag=True,
    help="Measure rounding as well: the script is run again on its own values, and moved ones, into "
    "DUMP's neighbour .forced.h5.",
)
@click.option(
    "--sketch",
    is_flag=True,
    help="Keep statistics and a 2 KB sketch of each larger tensor, not its values: dumps a hundred "
    "times smaller, differences known to 4 %.",
)
@click.option(
    "--stop", is_flag=True, help="End the script after its last wanted step, with exit code 0."
)
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="A rename rule from the reference's parameter names to this script's; repeatable.",
)
@click.option(
    "--map",
    "map_file",
    default=None,
    metavar="FILE",
    help="YAML or TOML file that names pairs of layers and parameters, for --weights-from and --forced-by.",
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
    forced_by: str,
    free: str,
    noise: bool,
    sketch: bool,
    stop: bool,
    renames: tuple[str, ...],
    map_file: str | None,
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

    \b
      paritydbg run --noise -o ref.h5 -- python train_torch.py
      paritydbg run --forced-by ref.forced.h5 --free port.h5 -o port.forced.h5 \\
          -- python train_mindspore.py

    --noise measures how far rounding alone moves each tensor; --forced-by gives every layer of
    the port the reference's values. bisect --reference CMD --port CMD does all of it.

    \b
      paritydbg run --sketch -o ref.h5 -- python train_torch.py

    --sketch is for a first pass over a net whose values would fill a disk. Batches, and parameters
    and buffers before the first step, are kept as values all the same, for the port to start from.
    Reports on sketches print their error bars, and say which layer to record in full where a
    sketch cannot tell. A forced replay needs a reference in full.
    """
    from paritydbg.errors import UsageError
    from paritydbg.replays import forced_run, noise_runs, paired_by, replayed_path
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
        sketch=sketch,
        stop=stop or noise,
        rename=tuple(parse_rename(text) for text in renames),
    )
    if free and not forced_by:
        raise UsageError("--free goes with --forced-by; name the dump whose values are given")
    if map_file and not (forced_by or weights_from):
        raise UsageError("--map goes with --weights-from or --forced-by; name a reference's dump")
    if map_file:
        order = paired_by(order, map_file)
    if noise and forced_by:
        raise UsageError("--noise measures a reference's free run; leave --forced-by away")
    if noise and sketch:
        raise UsageError("--noise is measured on values; leave --sketch away")
    if forced_by:
        launched = forced_run(command_line, order, forced_by, free, map_file=map_file)
    else:
        launched = run_script(command_line, order)
    if launched.captured:
        _tell(out, bool(weights_from or inputs_from or forced_by))
    if noise and not launched.exit_code:
        beside = replayed_path(out)
        launched = noise_runs(command_line, replace(order, out=beside), out)
        if launched.captured:
            _tell(beside, is_port=True)
    return launched.exit_code


def _tell(out: str, is_port: bool) -> None:
    """Say on stderr what was captured and what was taken for what."""
    from paritydbg.dump.reader import open_dump

    with open_dump(out) as dump:
        steps = sorted({event.key.step for event in dump.events})
        run = dump.run
        kept = sum(not event.has_values for event in dump.events)
        click.echo(
            f"paritydbg: {out}: {len(dump.events):,} events of step"
            f"{'s' if len(steps) > 1 else ''} {steps[0]}"
            + (f" to {steps[-1]}" if len(steps) > 1 else "")
            + (f", {kept:,} of them as sketches" if kept else ""),
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
