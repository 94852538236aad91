"""Findings that need no run: layers and parameters that only one side has, sharing, what is trained."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from paritydbg.model.comparison import Verdict
from paritydbg.model.finding import Finding, Stage
from paritydbg.model.pair import Alignment
from paritydbg.model.record import ParameterRecord, RunRecord


def structure_findings(
    alignment: Alignment, reference: RunRecord, port: RunRecord
) -> tuple[Finding, ...]:
    """What the two nets do not share in layers, parameters, ties and trainable flags."""
    found = list(_sharing(alignment, reference, port))
    found += _lone_layers(alignment, reference, port)
    found += _lone_parameters(alignment, reference, port)
    found += _trainable(alignment, reference, port)
    return tuple(found)


def unplaced_note(alignment: Alignment, reference: RunRecord, port: RunRecord) -> str:
    """A remark on parameters that stayed unpaired on both sides and may be each other's partners."""
    mine, yours = _lone_records(alignment, reference, port)
    if not _may_be_partners(mine, yours):
        return ""
    return (
        f"{len(mine)} parameters of the reference and {len(yours)} of the port stayed unpaired "
        f"({mine[0].name} …, {yours[0].name} …) though they hold as many numbers: name the pairs "
        "with --map or --rename"
    )


def _lone_layers(alignment: Alignment, reference: RunRecord, port: RunRecord) -> Iterable[Finding]:
    """Layers with parameters that only one side has: one finding for all of a side."""
    mine, yours = _lone_records(alignment, reference, port)
    if _may_be_partners(mine, yours):
        return
    for records, lone, only, other in (
        (mine, alignment.lone_reference, "reference", "port"),
        (yours, alignment.lone_port, "port", "reference"),
    ):
        whole = set(lone)
        owners = [p.layer for p in records if p.layer in whole]
        tops = tuple(dict.fromkeys(_top(owner, whole) for owner in owners))
        if tops:
            yield Finding(
                stage=Stage.STRUCTURE,
                verdict=Verdict.UNPAIRED,
                place=tops[0],
                port_place=tops[0] if only == "port" else "",
                summary=f"{_names(tops)} with parameters exist{'s' if len(tops) == 1 else ''} "
                f"only in the {only}; nothing in the {other} stands for "
                f"{'it' if len(tops) == 1 else 'them'}",
                static=True,
                also=tops[1:],
            )


def _lone_parameters(
    alignment: Alignment, reference: RunRecord, port: RunRecord
) -> Iterable[Finding]:
    """Parameters that only one side has, of layers that both have."""
    mine, yours = _lone_records(alignment, reference, port)
    if _may_be_partners(mine, yours):
        return
    partners = {pair.reference: pair.port for pair in alignment.layers}
    origins = {pair.port: pair.reference for pair in alignment.layers}
    for parameter in mine:
        if parameter.layer in partners:
            yield Finding(
                stage=Stage.STRUCTURE,
                verdict=Verdict.UNPAIRED,
                place=parameter.name,
                port_place=partners[parameter.layer] or "(net)",
                summary=f"{parameter.name} {parameter.shape} exists only in the reference: the "
                "port's layer has no such parameter, or holds it as a constant",
                static=True,
            )
    for parameter in yours:
        if parameter.layer in origins:
            yield Finding(
                stage=Stage.STRUCTURE,
                verdict=Verdict.UNPAIRED,
                place=_joined(origins[parameter.layer], parameter.name.rpartition(".")[2]),
                port_place=parameter.name,
                summary=f"{parameter.name} {parameter.shape} exists only in the port: the "
                "reference's layer has no such parameter",
                static=True,
            )


def _sharing(alignment: Alignment, reference: RunRecord, port: RunRecord) -> Iterable[Finding]:
    """Parameters that are one tensor on one side and two on the other."""
    partners: dict[str, list[str]] = {}
    origins: dict[str, list[str]] = {}
    for pair in alignment.parameters:
        if len(pair.reference) == len(pair.port) == 1:
            partners.setdefault(pair.reference[0], []).append(pair.port[0])
            origins.setdefault(pair.port[0], []).append(pair.reference[0])
    aliases: dict[str, list[str]] = {}
    for parameter in reference.parameters:
        if parameter.tied_to:
            aliases.setdefault(parameter.tied_to, []).append(parameter.name)
    trained = {p.name for p in (*reference.parameters, *port.parameters) if p.trainable}
    split = [(n, others) for n, others in partners.items() if len(others) > 1 and n in trained]
    if split:
        name, others = split[0]
        tied = tuple(aliases.get(name, ()))
        yield Finding(
            stage=Stage.STRUCTURE,
            verdict=Verdict.UNPAIRED,
            place=name,
            port_place=others[0],
            summary=f"{_names((name, *tied))} are one tensor in the reference and {len(others)} in "
            f"the port ({', '.join(others)}): gradients no longer add up",
            static=True,
            also=(*tied, *(other for other, _ in split[1:])),
        )
    joined = [(n, others) for n, others in origins.items() if len(others) > 1 and n in trained]
    if joined:
        name, others = joined[0]
        yield Finding(
            stage=Stage.STRUCTURE,
            verdict=Verdict.UNPAIRED,
            place=others[-1],
            port_place=name,
            summary=f"{', '.join(others)} are {len(others)} tensors in the reference and one in "
            f"the port ({name})" + (f"; {len(joined) - 1} more like it" if joined[1:] else ""),
            static=True,
            also=(*others[:-1], *(other for _, more in joined[1:] for other in more)),
        )


def _trainable(alignment: Alignment, reference: RunRecord, port: RunRecord) -> Iterable[Finding]:
    mine = {p.name: p for p in reference.parameters}
    yours = {p.name: p for p in port.parameters}
    for frozen_in, wanted in (("port", True), ("reference", False)):
        found = [
            (pair.reference[0], pair.port[0])
            for pair in alignment.parameters
            for one, other in [(mine.get(pair.reference[0]), yours.get(pair.port[0]))]
            if one is not None
            and other is not None
            and not (one.buffer or other.buffer)
            and one.trainable is wanted
            and other.trainable is not wanted
        ]
        if found:
            names = tuple(name for name, _ in found)
            yield Finding(
                stage=Stage.STRUCTURE,
                verdict=Verdict.UNPAIRED,
                place=names[0],
                port_place=found[0][1],
                summary=f"{_names(names)} {'is' if len(names) == 1 else 'are'} frozen in the "
                f"{frozen_in} alone (requires_grad)",
                static=True,
                also=names[1:],
            )


def _lone_records(
    alignment: Alignment, reference: RunRecord, port: RunRecord
) -> tuple[list[ParameterRecord], list[ParameterRecord]]:
    """Trainable parameters of each side without a partner."""
    lone = (
        set(alignment.lone_reference_parameters),
        set(alignment.lone_port_parameters),
    )
    return (
        [p for p in reference.parameters if p.name in lone[0] and p.trainable],
        [p for p in port.parameters if p.name in lone[1] and p.trainable],
    )


def _may_be_partners(mine: list[ParameterRecord], yours: list[ParameterRecord]) -> bool:
    """Whether what is left over on both sides holds as many numbers: an alignment that failed."""
    sizes = [sum(prod(p.shape) for p in side) for side in (mine, yours)]
    return bool(mine and yours) and sizes[0] == sizes[1]


def _top(name: str, within: set[str]) -> str:
    """The outermost layer of the set that a layer lies in."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        outer = ".".join(parts[:length])
        if outer in within:
            return outer
    return name


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _joined(layer: str, last: str) -> str:
    return f"{layer}.{last}" if layer else last
