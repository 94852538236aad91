"""Which layers to record in full around what sketches found, within a budget of bytes."""

from __future__ import annotations

import glob
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from paritydbg.errors import UsageError
from paritydbg.explain.context import layer_part
from paritydbg.model.event import Event, Role
from paritydbg.model.report import Report

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_OF_PARAMETERS = frozenset({Role.PARAMETER, Role.BUFFER, Role.GRAD, Role.GRAD_APPLIED})
_OF_STEPS = frozenset({Role.BATCH, Role.LOSS, Role.STATE})


@dataclass(frozen=True)
class Window:
    """Layers around a boundary.

    Attributes:
        reference, port: patterns of their names on each side, as ``--layer`` takes them.
        nbytes: of the reference's tensors that they stand for.
    """

    reference: tuple[str, ...]
    port: tuple[str, ...]
    nbytes: int


def parse_bytes(text: str) -> int:
    """The number of bytes in ``500MB``, ``2GB`` or ``1000000``.

    Raises:
        UsageError: no such size, or none above zero.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    base = 1024 if found and found[3] else 1000
    size = int(float(found[1]) * base ** _POWERS[found[2]]) if found else 0
    if size < 1:
        raise UsageError(f"{text!r} is no size in bytes; write e.g. 500MB or 2GB")
    return size


def window_around(report: Report, events: Iterable[Event], budget: int) -> Window | None:
    """The layers at and around the findings that fit the budget; None where no layer is concerned.

    What a finding names comes first, with the layers around it, then their neighbours in order of
    execution. The first of all is taken whatever it costs: without it there is nothing to look at.

    Args:
        report: on two sketch dumps.
        events: the reference's.
        budget: bytes of the reference's tensors, uncompressed.
    """
    partners = {pair.reference: pair.port for pair in report.alignment.layers}
    places = [layer_part(f.place) for f in (*report.findings, *report.suspects)]
    costs, first = _costs(events), _first_orders(events)
    wanted = _by_nearness([_known(place, partners) for place in places], first, partners)
    chosen: list[str] = []
    spent = 0
    for name in wanted:
        cost = costs.get(name, 0)
        if chosen and spent + cost > budget:
            break
        chosen.append(name)
        spent += cost
    if not chosen:
        return None
    mine = tuple(glob.escape(name) for name in chosen)
    yours = tuple(dict.fromkeys(glob.escape(partners[name]) for name in chosen))
    return Window(mine, yours, spent)


def refined(sketched: Report, full: Report) -> Report:
    """The report on sketches of the whole net, its findings as far as possible from full tensors.

    Outside of the window nothing was recorded in full, and what lies at its edges cannot be told from
    what came in: places are those that the sketches found.
    """
    better = {(finding.place, finding.phase): finding for finding in reversed(full.findings)}
    findings = tuple(
        replace(better[f.place, f.phase], followers=f.followers)
        if (f.place, f.phase) in better
        else f
        for f in sketched.findings
    )
    seen = sum((f.place, f.phase) in better for f in sketched.findings)
    note = f"of {len(findings)} places found on sketches, {seen} were looked at in full ({full.port_path})"
    return replace(sketched, findings=findings, notes=(*sketched.notes, note))


def _known(place: str, partners: Mapping[str, str]) -> str:
    """The innermost paired layer of a place: a parameter's owner, a lone layer's parent."""
    while place and place not in partners:
        place = place.rpartition(".")[0]
    return place


def _by_nearness(
    places: list[str], first: Mapping[str, int], partners: Mapping[str, str]
) -> list[str]:
    """Paired layers, those of findings first, then the nearest in order of execution."""
    named = [name for name in dict.fromkeys(places) if name]
    starts = [first[name] for name in named if name in first]
    if not starts:
        return named
    others = [name for name in first if name and name in partners and name not in named]
    return named + sorted(others, key=lambda n: min(abs(first[n] - start) for start in starts))


def _costs(events: Iterable[Event]) -> Mapping[str, int]:
    """Bytes of each layer's tensors as values, whatever is stored of them."""
    found: dict[str, int] = defaultdict(int)
    for event in events:
        if event.key.role not in _OF_STEPS:
            found[_layer(event)] += math.prod(event.shape) * _itemsize(event.dtype)
    return found


def _first_orders(events: Iterable[Event]) -> Mapping[str, int]:
    """When each layer's first tensor came by."""
    found: dict[str, int] = {}
    for event in events:
        if event.key.role in (Role.INPUT, Role.OUTPUT):
            found.setdefault(event.key.name, event.order)
    return found


def _layer(event: Event) -> str:
    name = event.key.name
    return name.rpartition(".")[0] if event.key.role in _OF_PARAMETERS else name


def _itemsize(dtype: str) -> int:
    return (
        2 if dtype == "bfloat16" else 1 if dtype.startswith("float8") else np.dtype(dtype).itemsize
    )
