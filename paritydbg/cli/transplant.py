"""``paritydbg transplant``: give the port the weights of the original, and save it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from paritydbg.weights.transplanting import Transplanted


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("weights", metavar="WEIGHTS")
@click.option(
    "--into",
    required=True,
    metavar="PACKAGE.MODULE:MAKE_NET",
    help="The function (without arguments) that makes the net to fill.",
)
@click.option(
    "-o",
    "--out",
    required=True,
    metavar="FILE",
    help="Where the filled net's weights go: .ckpt, .pth or .npz.",
)
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="A rename rule from the names in WEIGHTS to the net's; repeatable.",
)
@click.option(
    "--map",
    "map_file",
    default=None,
    metavar="FILE",
    help="YAML or TOML file that names pairs of layers and parameters.",
)
def command(
    weights: str, into: str, out: str, renames: tuple[str, ...], map_file: str | None
) -> None:
    """Put weights of one framework into a net of the other, so that both start equal.

    WEIGHTS is a dump (its parameters before the first step), or a .safetensors, .npz, .pth, .pt or
    .ckpt file; nothing in it is executed.

    \b
      paritydbg transplant ref.h5 --into my_port.net:make_net -o port.ckpt
      paritydbg transplant resnet.pth --into net:ResNet -o port.ckpt \\
          --rename downsample=down_sample_layer

    Names that differ by framework alone (weight and gamma, running_mean and moving_mean …) are known.
    A plain OLD=NEW replaces whole parts of a name, OLD may also be a pattern for the whole name:
    blocks.*.fc=layers.*.dense. The map file says the same in full:

    \b
      layers:      {encoder.layer: bert.blocks}
      parameters:  {head.scale: head.gamma}
      rename:      [[decoder, dec]]

    Printed is what was renamed, what changed its layout, and what was left over on either side. A
    shape that does not fit is an error, and nothing is written.
    """
    from paritydbg.align.user_map import UserMap, read_user_map
    from paritydbg.weights.rules import parse_rename
    from paritydbg.weights.transplanting import transplant

    given = read_user_map(map_file) if map_file is not None else UserMap()
    # What a map says of a layer holds for all that lies in it.
    rules = (*given.layers, *given.rename, *(parse_rename(text) for text in renames))
    moved = transplant(weights, into, out, rename=rules, user_map=dict(given.parameters))
    for line in _lines(moved, out):
        click.echo(line)


def _lines(moved: Transplanted, out: str) -> list[str]:
    """What became of every name, for a person to read."""
    lines = [f"{len(moved.values)} tensors written to {out}"]
    if moved.renamed:
        lines.append(f"renamed ({len(moved.renamed)}):")
        lines += [f"  {old} -> {new}" for old, new in moved.renamed]
    if moved.reshaped:
        lines.append(f"layout changed ({len(moved.reshaped)}):")
        lines += [f"  {old} -> {new}: {done}" for old, new, done in moved.reshaped]
    for title, names in (
        ("left over in the weights", moved.left_in_reference),
        ("not given a value, kept as the net has it", moved.left_in_port),
    ):
        if names:
            lines.append(f"{title} ({len(names)}):")
            lines += [f"  {name}" for name in names]
    shown = ("left over", "not given")
    lines += [note for note in moved.notes if not note.startswith(shown)]
    return lines
