"""Causes in gated feed-forwards: an activation of one tensor times another, both at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from paritydbg.explain.causes.activations import POINTWISE, activation_slug
from paritydbg.explain.causes.forms import Form, percent
from paritydbg.explain.causes.sampling import sampled
from paritydbg.explain.causes.site import Site, Source
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding


def gated_causes(_finding: Finding, _context: Context, site: Site) -> Iterable[Cause]:
    """Which activation the gate goes through on each side."""
    for gate, other in _pairs(site):
        mine = _best(site, gate.reference, other.reference, of_port=False)
        yours = _best(site, gate.port, other.port, of_port=True)
        if mine is None or yours is None or mine[0] is yours[0]:
            continue
        left = max(mine[1], yours[1])
        yield Cause(
            activation_slug(mine[0], yours[0]),
            f"the reference applies {mine[0].words}, the port {yours[0].words}, before the product "
            f"with {other.words}",
            f"recomputed in float64 from {gate.words} and {other.words} ({percent(left)} of the "
            "difference left)",
            round(0.95 - 0.5 * left, 3),
        )
        return


def _pairs(site: Site) -> Iterator[tuple[Source, Source]]:
    """Gate and factor among the nearest tensors of the site's shape."""
    near = [source for source in site.sources if source.port.shape == site.port.shape][:3]
    for gate in near:
        for other in near:
            if other is not gate:
                yield gate, other


def _best(site: Site, gate: Floats, factor: Floats, of_port: bool) -> tuple[Form, float] | None:
    sample = sampled(site, "element")
    picked, times = sample.pick(gate), sample.pick(factor)
    if picked is None or times is None:
        return None
    left = sample.site.left_of_port if of_port else sample.site.left_of_reference
    found: tuple[Form, float] | None = None
    for form in POINTWISE:
        value = form.value(picked, {})
        with np.errstate(all="ignore"):
            share = left(None if value is None else value * times)
        if share <= site.limit and (found is None or share < 0.8 * found[1]):
            found = form, share
    return found
