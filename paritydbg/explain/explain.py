"""Adds to a finding why it is so and what to write instead; where it lies was decided before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from paritydbg.explain.accuracy import with_accuracy
from paritydbg.explain.attributes import attribute_differences
from paritydbg.explain.candidates import candidates
from paritydbg.explain.causes.attributes import from_attributes
from paritydbg.explain.causes.backward import backward_causes
from paritydbg.explain.causes.forward import forward_causes
from paritydbg.explain.causes.inputs import input_causes
from paritydbg.explain.causes.losses import loss_causes
from paritydbg.explain.causes.running_stats import running_stats_causes
from paritydbg.explain.causes.states import state_causes
from paritydbg.explain.causes.structure import structure_causes
from paritydbg.explain.causes.updates import update_causes
from paritydbg.explain.causes.weights import weight_causes
from paritydbg.explain.context import Context, layer_part
from paritydbg.explain.optimizers import optimizer_differences
from paritydbg.model.finding import AttributeDifference, Candidate, Cause, Finding, Stage

CauseFinder = Callable[[Finding, Context], Iterable[Cause]]

_FINDERS: tuple[CauseFinder, ...] = (
    from_attributes,
    input_causes,
    structure_causes,
    weight_causes,
    forward_causes,
    loss_causes,
    backward_causes,
    update_causes,
    running_stats_causes,
    state_causes,
)
# Stages in which a layer's settings may be the reason.
_BY_LAYER = (Stage.FORWARD, Stage.CONFIG, Stage.BACKWARD, Stage.RUNNING_STATS, Stage.STRUCTURE)
# More reasons than a person reads.
_MOST = 4


def explain(finding: Finding, context: Context) -> Finding:
    """The finding with attributes, causes and candidates filled in; stage, verdict and place stay.

    A suspect without any of them says what it can be instead.
    """
    told = dataclasses.replace(finding, attributes=_attributes(finding, context))
    reasoned = dataclasses.replace(told, causes=_causes(told, context))
    reasoned = with_accuracy(reasoned, context)
    return dataclasses.replace(reasoned, candidates=_candidates(reasoned, context))


def _candidates(finding: Finding, context: Context) -> tuple[Candidate, ...]:
    return finding.candidates or candidates(finding, context)


def _attributes(finding: Finding, context: Context) -> tuple[AttributeDifference, ...]:
    """What the layers, or for an update the optimizers, were told differently."""
    if finding.attributes:
        return finding.attributes
    if finding.stage is Stage.UPDATE:
        return _of_optimizers(context)
    if finding.stage not in _BY_LAYER:
        return ()
    if finding.place.startswith(("before ", "after ")):
        return _of_enclosing(layer_part(finding.place), context)
    reference, port = context.layers_of(finding)
    if reference is None or port is None:
        return ()
    return attribute_differences(reference, port)


def _of_enclosing(name: str, context: Context) -> tuple[AttributeDifference, ...]:
    """Differences of the nearest layer around that has any: the code between layers is its own."""
    while name:
        name = name.rpartition(".")[0]
        reference, port = context.layer(name), context.partner(name)
        if reference is not None and port is not None:
            found = attribute_differences(reference, port)
            if found:
                return found
    return ()


def _of_optimizers(context: Context) -> tuple[AttributeDifference, ...]:
    partners = {
        name: port
        for pair in context.alignment.parameters
        for name, port in zip(pair.reference, pair.port, strict=False)
    }
    found: dict[str, AttributeDifference] = {}
    pairs = zip(context.reference.run.optimizers, context.port.run.optimizers, strict=False)
    for reference, port in pairs:
        for one in optimizer_differences(reference, port, partners):
            found.setdefault(one.name, one)
    return tuple(found.values())


def _causes(finding: Finding, context: Context) -> tuple[Cause, ...]:
    """Every cause once, the surest first; what two finders agree on is surer than either."""
    found: dict[str, Cause] = {}
    for cause in finding.causes:
        found[cause.slug] = cause
    for finder in _FINDERS:
        for cause in finder(finding, context):
            known = found.get(cause.slug)
            found[cause.slug] = cause if known is None else _joined(known, cause)
    return tuple(sorted(found.values(), key=lambda cause: -cause.confidence))[:_MOST]


def _joined(first: Cause, second: Cause) -> Cause:
    """One cause of two that give the same reason."""
    surer, other = (first, second) if first.confidence >= second.confidence else (second, first)
    evidence = "; ".join(dict.fromkeys(e for e in (surer.evidence, other.evidence) if e))
    confidence = round(1 - (1 - surer.confidence) * (1 - 0.5 * other.confidence), 3)
    return dataclasses.replace(
        surer, evidence=evidence, confidence=min(0.99, max(surer.confidence, confidence))
    )
