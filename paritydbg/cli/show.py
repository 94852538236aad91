"""``paritydbg show``: what a dump holds."""

from __future__ import annotations

import click


@click.command(name="show")
@click.argument("dump")
@click.option("--layer", "layers", multiple=True, metavar="GLOB", help="Only names that fit.")
@click.option("--events", "list_events", is_flag=True, help="List every captured tensor.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(dump: str, layers: tuple[str, ...], list_events: bool, as_json: bool) -> None:
    """Print what a dump holds: environment, layers, optimizers, steps, what was not captured.

    \b
      paritydbg show ref.h5
      paritydbg show ref.h5 --events --layer 'layer4.*'
    """
    import json

    from paritydbg.cli.comparing import stdout
    from paritydbg.dump.reader import open_dump
    from paritydbg.report.contents import Contents, contents_of, print_contents

    with open_dump(dump) as opened:
        contents: Contents = contents_of(opened, layers, list_events)
    if as_json:
        click.echo(json.dumps(contents.values(), indent=2, ensure_ascii=False))
    else:
        print_contents(contents, stdout())
