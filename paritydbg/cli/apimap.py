"""``paritydbg apimap``: what stands for a PyTorch API in MindSpore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from paritydbg.apimap.entry import ApiEntry

_RAN = {
    "matches": "same values",
    "differs": "differs",
    "no-kernel": "no kernel",
    "not-tried": "not tried",
}


@click.command(name="apimap")
@click.argument("torch_api", metavar="TORCH_API")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(torch_api: str, as_json: bool) -> None:
    """Print what stands for a PyTorch API in MindSpore, and what differs.

    Names may be short: `Linear`, `nn.Linear`, `F.gelu` and `torch.Tensor.add_` are understood.
    The first table lists MindSpore's APIs for the job, best first: what happened when each was
    given torch's inputs on MindSpore's CPU, and the defaults that are not torch's. The second
    lists what must be converted by hand, with the relative error of not doing so where it was
    measured.

    \b
      paritydbg apimap nn.LayerNorm
      paritydbg apimap F.interpolate --json

    Exit code 0: the API is known. 2: it is not, and names that come near are listed.
    """
    import dataclasses
    import json

    from paritydbg.apimap.lookup import lookup, similar
    from paritydbg.cli.comparing import stdout
    from paritydbg.errors import UsageError

    entry = lookup(torch_api)
    if entry is None:
        near = similar(torch_api)
        hint = (
            f"; did you mean {', '.join(near)}?" if near else "; give a name such as nn.LayerNorm"
        )
        raise UsageError(f"{torch_api!r} is not in the mapping table{hint}")
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(entry), indent=2, ensure_ascii=False))
    else:
        _print(entry, stdout())


def _print(entry: ApiEntry, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"{entry.torch_api} ({entry.kind}): {entry.relation}", style="bold"))
    if not entry.alternatives:
        console.print(Text("  nothing in MindSpore stands for it by name"))
    else:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("MindSpore", "on CPU", "defaults that differ"):
            table.add_column(name, overflow="fold")
        for alternative in entry.alternatives:
            ran = _RAN[alternative.ran]
            ran += f": {alternative.problem}" if alternative.problem else ""
            named = f"{alternative.api}{' *' if alternative.primary else ''}"
            table.add_row(
                Text(named),
                Text(ran, style="green" if alternative.ran == "matches" else ""),
                Text("; ".join(str(default) for default in alternative.defaults)),
            )
        console.print(table)
        console.print(Text("* named first by the public mapping", style="dim"))
    for label, text in _remarks(entry):
        console.print(Text(f"{label}: {text}"), soft_wrap=True)
    _print_conventions(entry, console)


def _remarks(entry: ApiEntry) -> list[tuple[str, str]]:
    """Labelled lines for everything in an entry that has no table of its own."""
    renamed = ", ".join(f"{old} -> {new}" for old, new in entry.renamed)
    lines = (
        ("renamed", renamed),
        ("only in torch", ", ".join(entry.missing)),
        ("only in MindSpore", ", ".join(entry.extra)),
        ("result dtype", entry.dtypes),
        ("note", entry.note),
        ("source", entry.source),
    )
    return [(label, text) for label, text in lines if text]


def _print_conventions(entry: ApiEntry, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    if not entry.conventions:
        return
    console.print(Text("Conversions", style="bold"))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("torch", "MindSpore", "write", "affects", "error without", "with"):
        table.add_column(name, overflow="fold")
    for convention in entry.conventions:
        table.add_row(
            Text(_setting(convention.torch_parameter, convention.torch_default)),
            Text(
                f"{convention.mindspore_api.removeprefix('mindspore.')} "
                + _setting(convention.mindspore_parameter, convention.mindspore_default)
            ),
            Text(convention.conversion),
            Text(convention.affects),
            Text(convention.before if convention.verified else "not run"),
            Text(convention.after if convention.verified else ""),
        )
    console.print(table)


def _setting(name: str, default: str) -> str:
    """``eps=1e-05``; the name alone where it tells the value or there is no default."""
    return name if "=" in name or default in ("", "-") else f"{name}={default}"
