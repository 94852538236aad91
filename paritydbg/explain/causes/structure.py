"""Causes of findings that need no run: layers and parameters missing, shared or frozen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paritydbg.explain.causes.weights_of import canonical
from paritydbg.explain.context import Context, layer_part
from paritydbg.model.comparison import Verdict
from paritydbg.model.finding import Cause, Finding, Stage


def structure_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What the two nets' structure and precision tell."""
    if finding.stage is Stage.CONFIG and finding.verdict is Verdict.DTYPE:
        yield Cause(
            "precision-level",
            "one side runs in half or mixed precision and the other does not: compare amp_level, "
            "to_float, auto_mixed_precision and autocast",
            finding.summary,
            0.9,
        )
        return
    if finding.stage is not Stage.STRUCTURE:
        return
    name = layer_part(finding.place)
    if context.parameter(name) is not None or context.port_parameter(finding.port_place):
        yield from _of_parameter(name, finding, context)
    else:
        yield from _of_layer(name, finding, context)


def _of_layer(name: str, finding: Finding, context: Context) -> Iterator[Cause]:
    """Whole layers that one side has alone."""
    names = (name, *finding.also)
    in_reference = context.layer(name) is not None and name in context.alignment.lone_reference
    side, other = ("reference", "port") if in_reference else ("port", "reference")
    counts = len(context.reference.run.layers), len(context.port.run.layers)
    same_kind = _siblings(name, context, of_port=not in_reference)
    beside = f"; beside it {', '.join(same_kind[:3])} exist on both sides" if same_kind else ""
    yield Cause(
        "missing-blocks" if in_reference else "extra-blocks",
        f"the {other} builds fewer layers: {', '.join(names[:3])} have no partner{beside}; compare "
        "the numbers of repeated blocks",
        f"layers: reference {counts[0]}, port {counts[1]}; {len(names)} only in the {side}",
        0.9,
    )


def _siblings(name: str, context: Context, of_port: bool) -> list[str]:
    """Layers of the same class beside one that has no partner."""
    run = context.port.run if of_port else context.reference.run
    lone = set(context.alignment.lone_port if of_port else context.alignment.lone_reference)
    kinds = {layer.name: layer.type for layer in run.layers}
    parent = name.rpartition(".")[0]
    return [
        other
        for other, kind in kinds.items()
        if other not in lone and other.rpartition(".")[0] == parent and kind == kinds.get(name)
    ]


def _of_parameter(name: str, finding: Finding, context: Context) -> Iterator[Cause]:
    record = context.parameter(name)
    partners = _partners(name, context)
    if record is not None and len(partners) > 1:
        yield Cause(
            "weight-tying-lost",
            f"one tensor of the reference became {len(partners)} in the port: assign the same "
            "Parameter to both layers, so that both gradients reach it",
            f"{', '.join((name, *finding.also))} ↔ {', '.join(partners)}",
            0.95,
        )
        return
    origins = [
        pair.reference[0]
        for pair in context.alignment.parameters
        if pair.port == (finding.port_place,) and len(pair.reference) == 1
    ]
    if len(set(origins)) > 1:
        yield Cause(
            "weight-shared-wrongly",
            f"the port uses one Parameter for {len(set(origins))} of the reference's: two layers are "
            "the same object there",
            f"{', '.join(sorted(set(origins)))} ↔ {finding.port_place}",
            0.95,
        )
        return
    other = context.port_parameter(partners[0]) if partners else None
    if record is not None and other is not None and record.trainable != other.trainable:
        frozen = "port" if record.trainable else "reference"
        yield Cause(
            "parameter-frozen" if frozen == "port" else "parameter-not-frozen",
            f"requires_grad is False in the {frozen} alone",
            f"{name}: reference trainable={record.trainable}, port trainable={other.trainable}",
            0.95,
        )
        return
    yield from _lone(name, finding, context)


def _lone(name: str, finding: Finding, context: Context) -> Iterator[Cause]:
    """A parameter that one side of a paired layer has alone."""
    in_reference = context.parameter(name) is not None and not _partners(name, context)
    layer, port_layer = context.layers_of(finding)
    last = canonical(name)
    kind = layer.type if layer is not None else ""
    if not in_reference:
        yield Cause(
            "bias-added" if last == "bias" else "parameter-added",
            f"the port's layer has a {last} that the reference's has not",
            f"{finding.port_place} has no partner",
            0.8,
        )
    elif "norm" in kind.lower():
        yield Cause(
            "norm-affine-missing",
            "the port's norm has no weight and bias of its own to train",
            f"{name} has no partner in {port_layer.name if port_layer else 'the port'}",
            0.9,
        )
    elif last == "bias":
        convolves = "Conv" in kind
        yield Cause(
            "conv-bias-missing" if convolves else "bias-missing",
            "the port's layer has no bias: write has_bias=True"
            + (" (mindspore.nn's convolutions have none unless told)" if convolves else ""),
            f"{name} has no partner in {port_layer.name if port_layer else 'the port'}",
            0.93,
        )
    else:
        # Parameters in a plain list or dict are not found by the cell; a single one is a constant.
        listed = any(part.isdigit() for part in name.split(".")[-2:])
        slugs = ("parameter-not-registered", "parameter-became-constant")
        for slug, sure in zip(slugs if listed else slugs[::-1], (0.75, 0.4), strict=True):
            yield Cause(
                slug,
                "the port's layer holds it as a plain tensor: make it a mindspore.Parameter"
                if slug == "parameter-became-constant"
                else "the port's layer keeps it where the cell does not find it: use ParameterTuple, "
                "or an attribute of the cell",
                f"{name} has no partner in {(port_layer.name if port_layer else '') or 'the net'}",
                sure,
            )


def _partners(name: str, context: Context) -> tuple[str, ...]:
    """All of the port's parameters that stand for one of the reference's."""
    found = [
        pair.port[0]
        for pair in context.alignment.parameters
        if pair.reference == (name,) and len(pair.port) == 1
    ]
    return tuple(dict.fromkeys(found))
