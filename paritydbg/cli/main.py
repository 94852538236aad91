"""The ``paritydbg`` command: finds the subcommands, and turns every ending into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from paritydbg.errors import ParitydbgError

# In the order in which a person meets them; each names a module of this package with a `command`.
COMMANDS = ("run", "bisect", "diff", "show", "repro", "transplant", "apimap")


class _Commands(click.Group):
    """Imports a subcommand's file when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"paritydbg.cli.{cmd_name}").command
        return command if isinstance(command, click.Command) else None


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from paritydbg import __version__

        click.echo(f"paritydbg {__version__}")
        ctx.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def cli() -> None:
    """Find the first layer where a MindSpore port parts from its PyTorch original, and why.

    \b
      1. record the original    paritydbg run -o ref.h5 -- python train_torch.py
      2. record the port from   paritydbg run -o port.h5 --weights-from ref.h5 \\
         the same start             --inputs-from ref.h5 -- python train_mindspore.py
      3. ask what is wrong      paritydbg bisect ref.h5 port.h5

    Both scripts stay as they are. `diff` shows every pair of tensors, `show` what a dump
    holds, `apimap` what stands for a PyTorch API in MindSpore, `repro` makes one finding into
    two small scripts.

    Exit codes: 0 parity, 1 divergence, 2 anything else, 130 interrupted; `run` passes on the
    script's own.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(exit_code(arguments))


def exit_code(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; a crash never reads as a divergence."""
    try:
        result = cli.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="paritydbg",
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("paritydbg: interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader of our output left (`| head`): nothing more to say, and no traceback.
        sys.stderr.close()
        return 2
    except ParitydbgError as error:
        click.echo(f"paritydbg: error: {error}", err=True)
        return 2
    except Exception:  # noqa: BLE001 (the one place: an unknown error must end with 2, not 1)
        import traceback

        traceback.print_exc()
        click.echo("paritydbg: internal error; the lines above tell where", err=True)
        return 2
    return result if isinstance(result, int) else 0
