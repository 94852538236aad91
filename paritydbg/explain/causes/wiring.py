"""Causes in wiring: factors, missing additions, orders of entries, told by the values alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import Form, Weights, percent, recognise
from paritydbg.explain.causes.orders import order_causes
from paritydbg.explain.causes.site import Site, Source
from paritydbg.explain.context import Context, Floats
from paritydbg.model.event import Role
from paritydbg.model.finding import Cause, Finding

Index = NDArray[np.intp]


def wiring_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """A factor, an addition that one side lacks, or the same entries in another order."""
    found = [
        *_swapped(finding, context),
        *order_causes(site, context),
        *_layout(site),
        *_addition(finding, context, site),
        *_factor(finding, context, site),
    ]
    yield from found


def _swapped(finding: Finding, context: Context) -> Iterable[Cause]:
    """Layers that run in another order, one of which is where values part."""
    owner = context.owner(finding.place)
    moved = context.alignment.moved
    near = owner is not None and any(
        name == owner.name or name.startswith(f"{owner.name}.") or owner.name.startswith(f"{name}.")
        for name in moved
    )
    siblings = owner is not None and any(
        name.rpartition(".")[0] == owner.name.rpartition(".")[0] for name in moved
    )
    if near or siblings:
        yield Cause(
            "swapped-blocks",
            f"the port runs {', '.join(moved[:4])} in another order than the reference",
            "paired by their parameters, and called in another order",
            0.92,
        )


def _factor(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    scale = fitted_factor(site.reference, site.port)
    if scale is None:
        return
    left = site.left_of_port(scale * site.reference)
    if left > site.limit:
        return
    owner = context.owner(finding.place)
    words = f"{owner.type} {owner.name}".lower() if owner is not None else ""
    slug = "values-scaled"
    if "emb" in words:
        slug = "embedding-scale"
    elif "att" in words:
        slug = "attention-scale"
    yield Cause(
        slug,
        f"the port's values are {named_factor(scale, site.port.shape)} times the reference's",
        f"port = {scale:.7g} · reference ({percent(left)} of the difference left)",
        round(0.85 - 0.5 * left, 3),
    )


def fitted_factor(reference: Floats, port: Floats) -> float | None:
    """The factor that leads from the reference to the port best, None where there is none but 1."""
    both = np.isfinite(reference) & np.isfinite(port)
    size = float(np.vdot(reference[both], reference[both]))
    if not size:
        return None
    scale = float(np.vdot(reference[both], port[both])) / size
    return scale if scale and not math.isclose(scale, 1.0, rel_tol=1e-9) else None


def named_factor(scale: float, shape: Iterable[int] = ()) -> str:
    """A factor in words: ``2``, ``1/8``, ``√64``, else its digits."""
    for value, words in _named(shape):
        if math.isclose(scale, value, rel_tol=1e-4):
            return words
    return f"{scale:.6g}"


def _named(shape: Iterable[int]) -> Iterator[tuple[float, str]]:
    yield -1.0, "-1"
    for number in dict.fromkeys((*range(2, 17), 24, 32, 48, 64, 96, 128, 255, 256, 512, *shape)):
        if number > 1:
            yield float(number), f"{number}"
            yield 1 / number, f"1/{number}"
            yield math.sqrt(number), f"√{number}"
            yield 1 / math.sqrt(number), f"1/√{number}"


def _addition(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """One side adds a tensor that both had at hand, the other does not."""
    for source in site.sources:
        if source.port.shape != site.port.shape:
            continue
        for sign, words in (
            (-1.0, f"the port leaves out {source.words}, which the reference adds"),
            (1.0, f"the port adds {source.words}, which the reference does not"),
        ):
            left = site.left_of_port(site.reference + sign * source.reference)
            if left <= site.limit:
                if sign < 0 and _added_later(finding, context, source):
                    yield Cause(
                        "residual-before-norm",
                        f"the reference adds {source.words} before this norm, the port after it",
                        f"the norm's output plus {source.words} is what goes on in the port",
                        0.96,
                    )
                    return
                yield Cause(
                    "residual-missing" if sign < 0 else "residual-added",
                    words,
                    f"reference {'-' if sign < 0 else '+'} {source.words} gives the port's values "
                    f"({percent(left)} of the difference left)",
                    round(0.92 - 0.5 * left, 3),
                )
                return


def _added_later(finding: Finding, context: Context, source: Source) -> bool:
    """Whether the port adds the tensor to the output of the layer that the finding's input leads to."""
    evidence = finding.evidence
    if evidence is None or evidence.pair.first.key.role is not Role.INPUT:
        return False
    key = evidence.pair.port[0].key
    outputs = [
        event
        for event in context.port.events
        if event.key == replace(key, role=Role.OUTPUT, slot=event.key.slot)
    ]
    if not outputs or outputs[0].shape != source.port.shape:
        return False
    made = context.port_event(outputs[0])
    if made is None:
        return False
    wanted = made + source.port
    later = [
        event
        for event in context.port.events
        if event.key.role in (Role.INPUT, Role.OUTPUT)
        and event.order > outputs[0].order
        and event.shape == outputs[0].shape
    ]
    size = float(np.linalg.norm(source.port))
    for event in later[:6]:
        value = context.port_event(event)
        if value is not None and float(np.linalg.norm(value - wanted)) <= 0.01 * size:
            return True
    return False


def _layout(site: Site) -> Iterable[Cause]:
    """Both sides reshape the same tensor, with its axes in another order."""
    for source in site.sources:
        if source.reference.size != site.port.size or not 2 <= source.reference.ndim <= 5:
            continue
        narrowed = (source,)
        forms = tuple(_reshapes(source, site.port.shape))
        reduced = _with_sources(site, narrowed)
        for found in recognise(reduced, forms):
            flat = site.port.ndim < source.reference.ndim
            yield Cause(
                "flatten-order" if flat else "axes-order",
                f"the reference reshapes {found.reference.words}, the port {found.port.words}",
                found.evidence,
                found.confidence,
            )
            return


def _with_sources(site: Site, sources: tuple[Source, ...]) -> Site:
    return Site(site.words, site.reference, site.port, site.gap, site.limit, sources)


def _reshapes(source: Source, shape: tuple[int, ...]) -> Iterator[Form]:
    for order in permutations(range(source.reference.ndim)):

        def value(x: Floats, _weights: Weights, order: tuple[int, ...] = order) -> Floats:
            return x.transpose(order).reshape(shape)

        words = "it as it lies" if order == tuple(sorted(order)) else f"its axes {order}"
        yield Form(words, "reshape", value)
