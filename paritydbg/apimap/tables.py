"""Reads the CSV tables into entries, once and when first asked; finding an entry by name is in `lookup`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import TypeVar

from paritydbg.apimap.entry import (
    Alternative,
    ApiEntry,
    Convention,
    DefaultDifference,
    ParameterPair,
    Ran,
)

# "nn.LayerNorm{eps=1e-05|epsilon=1e-07} ops.layer_norm{…}"
_PER_API = re.compile(r"(\S+?)\{([^}]*)\}")
# Defaults may hold commas themselves, so a separator counts only before the next `a=…|b=…`.
_NEXT_DEFAULT = re.compile(r"[;,] (?=\w+=[^|=]*\|\w+=)")
Row = TypeVar("Row")
_ORDER: tuple[Ran, ...] = ("matches", "not-tried", "differs", "no-kernel")


@lru_cache(maxsize=1)
def entries() -> dict[str, ApiEntry]:
    """Every entry by its torch API's full name, in the table's order."""
    pairs = _grouped(_pairs())
    conventions = _grouped(_conventions())
    rows = tuple(_rows("apis.csv"))
    # What has no kernel in one row has none in a row that did not try it.
    kernelless = {_full(name) for row in rows for name in _items(row["cpu_no_kernel"])}
    kernelless -= {_full(name) for row in rows for name in _items(row["cpu_matching"])}
    return {
        row["torch_api"]: _entry(
            row,
            _alternatives(row, kernelless),
            tuple(pairs.get(row["torch_api"], ())),
            tuple(conventions.get(row["torch_api"], ())),
        )
        for row in rows
    }


@lru_cache(maxsize=1)
def inplace_methods() -> dict[str, str]:
    """In-place Tensor method -> what it does to the tensor on MindSpore's CPU: ``none, silently`` …"""
    return {row["method"]: row["effect"] for row in _rows("inplace.csv")}


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (files("paritydbg.apimap") / name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


def _pairs() -> Iterator[tuple[str, ParameterPair]]:
    for row in _rows("parameters.csv"):
        yield (
            row["torch_api"],
            ParameterPair(
                row["mindspore_api"],
                row["torch_parameter"],
                row["mindspore_parameter"],
                row["relation"],
                row["source"],
            ),
        )


def _conventions() -> Iterator[tuple[str, Convention]]:
    for row in _rows("conventions.csv"):
        yield (
            row["torch_api"],
            Convention(
                row["mindspore_api"],
                row["torch_parameter"],
                row["torch_default"],
                row["mindspore_parameter"],
                row["mindspore_default"],
                row["conversion"],
                row["affects"],
                row["verified"] == "yes",
                row["relative_before"],
                row["relative_after"],
                row["note"],
            ),
        )


def _grouped(rows: Iterator[tuple[str, Row]]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for name, value in rows:
        groups.setdefault(name, []).append(value)
    return groups


def _entry(
    row: dict[str, str],
    alternatives: tuple[Alternative, ...],
    pairs: tuple[ParameterPair, ...],
    conventions: tuple[Convention, ...],
) -> ApiEntry:
    return ApiEntry(
        torch_api=row["torch_api"],
        mindspore_api=row["mindspore_api"],
        kind=row["kind"],
        relation=row["relation"],
        alternatives=alternatives,
        renamed=tuple(
            (old, new) for old, _, new in (item.partition("->") for item in _items(row["renamed"]))
        ),
        missing=_items(row["missing"]),
        extra=_items(row["extra"]),
        parameters=pairs,
        conventions=conventions,
        dtypes=row["cpu_dtypes"],
        note=row["note"],
        source=row["source"],
    )


def _alternatives(row: dict[str, str], kernelless: set[str]) -> tuple[Alternative, ...]:
    """The row's MindSpore APIs, best on CPU first; among equals the table's order."""
    matching = [_full(name) for name in _items(row["cpu_matching"])]
    problems = {
        _full(name): problem.rstrip("]")
        for name, _, problem in (item.partition("[") for item in _items(row["cpu_differs"]))
    }
    primary = row["mindspore_api"]
    defaults = {
        _full(name): _defaults(text)
        for name, text in _PER_API.findall(row["alternative_default_differences"])
    }
    defaults[primary] = _defaults(row["default_differences"])
    names = [name for name in (primary, *_items(row["alternatives"])) if name]
    found = []
    for name in dict.fromkeys(names):
        ran: Ran = "not-tried"
        if name in matching:
            ran = "matches"
        elif name in problems:
            ran = "differs"
        elif name in kernelless:
            ran = "no-kernel"
        found.append(
            Alternative(name, ran, problems.get(name, ""), name == primary, defaults.get(name, ()))
        )
    place = {name: number for number, name in enumerate([*matching, *names])}
    return tuple(sorted(found, key=lambda a: (_ORDER.index(a.ran), place[a.api])))


def _defaults(text: str) -> tuple[DefaultDifference, ...]:
    found = []
    for item in _NEXT_DEFAULT.split(text) if text else ():
        left, _, right = item.partition("|")
        name, _, default = left.partition("=")
        port_name, _, port_default = right.partition("=")
        found.append(DefaultDifference(name, default, port_name, port_default))
    return tuple(found)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(";") if item.strip())


def _full(short: str) -> str:
    """``nn.Dense`` as ``mindspore.nn.Dense``."""
    return short if short.startswith("mindspore.") else f"mindspore.{short}"
