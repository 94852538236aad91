"""Holds the mapping tables against the installed frameworks: that APIs exist, and their defaults.

    python scripts/verify_apimap.py --sample 200
    python scripts/verify_apimap.py --api 'torch.nn.*'

Prints one line per mismatch and ends with 1 if there is any. What has no readable signature (most of
torch's functions) is checked for existence alone.
"""

from __future__ import annotations

import fnmatch
import inspect
import os
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click

from paritydbg.apimap.entry import Alternative, ApiEntry, DefaultDifference
from paritydbg.apimap.tables import entries

REQUIRED = "<required>"


@dataclass
class Tally:
    """How much was checked; rows of packages that are not installed are skipped."""

    existing: int = 0
    defaults: int = 0
    unreadable: int = 0
    skipped: int = 0


def chosen(pattern: str, sample: int, seed: int = 0) -> tuple[ApiEntry, ...]:
    """The entries whose torch name fits, at most so many of them, drawn evenly."""
    found = [entry for name, entry in entries().items() if fnmatch.fnmatch(name, pattern)]
    if sample and sample < len(found):
        found = random.Random(seed).sample(found, sample)
    return tuple(found)


def mismatches(rows: Iterable[ApiEntry], tally: Tally) -> Iterator[str]:
    """What the tables say and the installed frameworks do not."""
    for entry in rows:
        if find_spec(entry.torch_api.partition(".")[0]) is None:
            tally.skipped += 1
            continue
        torch_api = resolve(entry.torch_api)
        if torch_api is None:
            yield f"{entry.torch_api}: not in the installed torch"
            continue
        tally.existing += 1
        for alternative in entry.alternatives:
            mindspore_api = resolve(alternative.api)
            if mindspore_api is None and entry.relation.startswith("removed"):
                # The table says itself that it is gone.
                continue
            if mindspore_api is None:
                yield f"{entry.torch_api}: {alternative.api} is not in the installed MindSpore"
                continue
            tally.existing += 1
            yield from _defaults(entry, alternative, torch_api, mindspore_api, tally)


def resolve(api: str) -> Any:
    """The object of a full name, None where the installed framework has none."""
    parts = api.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for name in parts[length:]:
            found = getattr(found, name, None)
            if found is None:
                return None
        return found
    return None


def _defaults(
    entry: ApiEntry, alternative: Alternative, torch_api: Any, mindspore_api: Any, tally: Tally
) -> Iterator[str]:
    sides = parameters(torch_api), parameters(mindspore_api)
    for difference in alternative.defaults:
        for side, name, told in _claims(difference):
            found = sides[side]
            if found is None or name not in found:
                tally.unreadable += 1
                continue
            tally.defaults += 1
            if not same_default(found[name], told):
                api = alternative.api if side else entry.torch_api
                yield f"{api}: {name} defaults to {found[name]!r}, the table says {told}"


def _claims(difference: DefaultDifference) -> tuple[tuple[int, str, str], ...]:
    """(0 for torch, 1 for MindSpore; parameter; default) as the table has them."""
    return (
        (0, difference.torch_parameter, difference.torch_default),
        (1, difference.mindspore_parameter, difference.mindspore_default),
    )


def parameters(api: Any) -> dict[str, Any] | None:
    """Parameter -> default (``<required>`` without one), None where the signature cannot be read."""
    target = api.__init__ if inspect.isclass(api) else api
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    return {
        name: REQUIRED if one.default is inspect.Parameter.empty else one.default
        for name, one in signature.parameters.items()
        if one.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    }


def same_default(found: Any, told: str) -> bool:
    """Whether a default is what the table writes, which holds every number as a float."""
    if isinstance(found, bool) or found is None:
        return str(found) == told
    if isinstance(found, (int, float)):
        try:
            return abs(float(told) - found) <= 1e-9 * max(1.0, abs(found))
        except ValueError:
            return False
    shown = getattr(found, "__name__", str(found))
    return shown.strip("'\"") == told.strip("'\"")


@click.command()
@click.option("--api", "pattern", default="*", metavar="GLOB", help="Only torch APIs that fit.")
@click.option("--sample", default=0, metavar="N", help="At most so many rows, drawn at random.")
@click.option("--seed", default=0, metavar="N", help="Of the draw.")
def main(pattern: str, sample: int, seed: int) -> None:
    """Check the mapping tables against the installed torch and MindSpore."""
    os.environ.setdefault("GLOG_v", "3")
    rows = chosen(pattern, sample, seed)
    if not rows:
        raise click.UsageError(f"no torch API of the table fits {pattern!r}")
    tally = Tally()
    count = 0
    for line in mismatches(rows, tally):
        click.echo(line)
        count += 1
    click.echo(
        f"{len(rows)} rows ({tally.skipped} of packages that are not installed): {tally.existing} APIs "
        f"found, {tally.defaults} defaults checked, {tally.unreadable} without a readable signature; "
        f"{count} mismatches"
    )
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
