"""Adds to a finding why it is so and what to write instead; where it lies was decided before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

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
from paritydbg.explain.context import Context
from paritydbg.model.finding import AttributeDifference, Candidate, Cause, Finding

CauseFinder = Callable[[Finding, Context], Iterable[Cause]]

_EVERYWHERE: tuple[CauseFinder, ...] = (
    from_attributes,
    forward_causes,
    backward_causes,
    structure_causes,
    weight_causes,
    input_causes,
    loss_causes,
    update_causes,
    running_stats_causes,
    state_causes,
)
# More reasons than a person reads.
_MOST = 4


def explain(finding: Finding, context: Context) -> Finding:
    """The finding with attributes, causes and candidates filled in; stage, verdict, place stay."""
    with_attributes = dataclasses.replace(finding, attributes=_attributes(finding, context))
    with_causes = dataclasses.replace(with_attributes, causes=_causes(with_attributes, context))
    return dataclasses.replace(with_causes, candidates=_candidates(with_causes, context))


def _candidates(finding: Finding, context: Context) -> tuple[Candidate, ...]:
    return finding.candidates or candidates(finding, context)


def _attributes(finding: Finding, context: Context) -> tuple[AttributeDifference, ...]:
    if finding.attributes:
        return finding.attributes
    reference, port = context.layers_of(finding)
    if reference is None or port is None:
        return ()
    return attribute_differences(reference, port)


def _causes(finding: Finding, context: Context) -> tuple[Cause, ...]:
    found: dict[str, Cause] = {c.slug: c for c in finding.causes}
    for finder in _EVERYWHERE:
        for cause in finder(finding, context):
            if cause.slug not in found or found[cause.slug].confidence < cause.confidence:
                found[cause.slug] = cause
    return tuple(sorted(found.values(), key=lambda c: -c.confidence))[:_MOST]
