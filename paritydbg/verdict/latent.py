"""Finds layers that agree on what they were fed, and part when they are fed much smaller values.

An epsilon is lost in rounding beside an ordinary variance; it shows beside a small one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paritydbg.measure.noise import ModelledNoise
from paritydbg.measure.precision import no_finer
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import EventKey, Phase, Role
from paritydbg.model.finding import Finding, Stage
from paritydbg.model.pair import Alignment, EventPair
from paritydbg.model.source import EventSource
from paritydbg.verdict.compare import compare_pair
from paritydbg.verdict.judge import GAIN, MATTERS

_QUIET = (Verdict.MATCH, Verdict.SUSPECT)


@dataclass(frozen=True)
class Stressed:
    """Replays of both sides in which the inputs of leaves were scaled down.

    Attributes:
        reference, port: of both sides, outputs alone.
    """

    reference: EventSource
    port: EventSource


def latent(
    alignment: Alignment, comparisons: Iterable[Comparison], stressed: Stressed
) -> tuple[tuple[Finding, ...], str]:
    """Layers that part only on smaller inputs, each once, and a remark on how many were tried.

    Args:
        comparisons: of the ordinary inputs, with final verdicts: what differs there already, or draws
            at random, is not looked at.
    """
    mine = {event.key: event for event in stressed.reference.events}
    yours = {event.key: event for event in stressed.port.events}
    quiet = {c.pair.first.key for c in comparisons if c.verdict in _QUIET}
    leaves = {layer.name for layer in stressed.reference.run.layers if layer.leaf}
    found: dict[str, Finding] = {}
    tried: set[EventKey] = set()
    for pair in alignment.events:
        keys = [event.key for event in pair.reference], [event.key for event in pair.port]
        first = pair.first.key
        if first.role is not Role.OUTPUT or first not in quiet or first.name not in leaves:
            continue
        if not all(key in mine for key in keys[0]) or not all(key in yours for key in keys[1]):
            continue
        tried.add(first)
        events = tuple(mine[key] for key in keys[0]), tuple(yours[key] for key in keys[1])
        small = EventPair(*events, pair.transform, pair.how, pair.confidence)
        finding = _finding(compare_pair(small, stressed.reference, stressed.port, ModelledNoise()))
        if finding is not None:
            found.setdefault(first.name, finding)
    note = f"{len(tried):,} outputs of layers were compared on inputs scaled down as well"
    return tuple(found.values()), note if tried else ""


def _finding(comparison: Comparison) -> Finding | None:
    metrics, allowance = comparison.metrics, comparison.allowance
    if metrics is None or allowance is None or metrics.nonfinite_differs:
        return None
    dtypes = [event.dtype for event in (*comparison.pair.reference, *comparison.pair.port)]
    bound = no_finer(MATTERS, *dtypes) * metrics.reference_l2
    if metrics.difference_l2 <= max(bound, GAIN * allowance.l2):
        return None
    key = comparison.pair.first.key
    return Finding(
        stage=Stage.FORWARD,
        verdict=Verdict.SUSPECT,
        place=key.name,
        port_place=comparison.pair.port[0].key.name,
        summary=f"latent: {key.name} agrees on this batch, and differs by {metrics.relative_l2:.1e} "
        "when it is fed much smaller values: an epsilon or another small constant that rounding "
        "hides here, or a kernel that is inaccurate near zero",
        phase=Phase.FORWARD,
        step=key.step,
        evidence=comparison,
        inputs_agree=True,
    )
