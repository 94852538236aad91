"""What a layer or an optimizer is tried on, taken from the dumps, and what the reference has there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from paritydbg.explain.context import MOST_ELEMENTS, Context
from paritydbg.explain.reading import family_of
from paritydbg.measure.layer_noise import rounding
from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.finding import Finding
from paritydbg.model.record import LayerRecord, ParameterRecord
from paritydbg.model.trial import Array, Call, Trial

# Forward, an allowance that holds what came in says nothing of a trial on the reference's own inputs.
_MOST_ALLOWED = 1e-3
_RANDOM = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "RReLU")


@dataclass(frozen=True)
class Expected:
    """What the reference has where a candidate's results come.

    Attributes:
        outputs, grad_inputs, gradients, values: as in `TrialResult`, fewer where the dump has not all.
        allowed: relative error up to which outputs and states are the reference's.
        shared_inputs: whether a gradient of an input may be the sum over several users of it.
        words: what was replaced, for a reader.
    """

    outputs: Mapping[str, Array] = field(default_factory=dict)
    grad_inputs: Mapping[str, Array] = field(default_factory=dict)
    gradients: Mapping[str, Array] = field(default_factory=dict)
    values: Mapping[str, Array] = field(default_factory=dict)
    allowed: float = 0.0
    shared_inputs: bool = True
    words: str = ""


def layer_trial(
    finding: Finding, context: Context, own_gradients: bool = False
) -> tuple[Trial, Expected] | str:
    """The reference's layer of a finding on the reference's tensors, in the port's layout.

    The call is the reference layer's own line, empty where the record does not tell it. A string says
    why there is no trial.
    """
    reference = context.owner(finding.place)
    if reference is None or finding.place.startswith(("before ", "after ")):
        return "not tried: it lies in code between layers, whose tensors were not captured"
    if family_of(reference) in _RANDOM:
        return "not tried: the layer draws at random"
    step, prefix = finding.step, f"{reference.name}." if reference.name else ""
    own = finding.evidence if _of_layer(finding, reference) else None
    call = own.pair.first.key.call if own is not None else 0
    inputs = _inputs(reference, context, step, call)
    outputs = _compared(context, reference.name, Role.OUTPUT, step, call)
    if not inputs:
        return "not tried: its inputs are not in the dump"
    if not outputs:
        return "not tried: its output is not in the dump"
    parameters = tuple(
        replace(p, name=p.name[len(prefix) :], layer=p.layer[len(prefix) :])
        for p in context.reference.run.parameters
        if p.layer == reference.name or p.layer.startswith(prefix)
    )
    values = _values(context, reference, parameters, step, Phase.FORWARD)
    if len(values) < len([p for p in parameters if p.shape]):
        return "not tried: its parameters are not in the dump"
    backward = _compared(context, reference.name, Role.GRAD_OUTPUT, step, call)
    complete = len(backward) == len(outputs)
    alone = not any(
        c.pair.first.key.call for c in context.comparisons_of(reference.name, Role.INPUT, step)
    )
    lone = alone and not any(p.tied_to for p in parameters)
    trial = Trial(
        Call("", ()),
        replace(reference, name="", parameters=tuple(p.name for p in parameters)),
        parameters,
        values,
        inputs,
        _by_slot(context, backward) if complete else {},
        training=reference.training,
    )
    coming = _compared(context, reference.name, Role.GRAD_INPUT, step, call)
    grad_inputs = _by_slot(context, coming)
    gradients = _values(context, reference, parameters, step, Phase.BACKWARD) if lone else {}
    states = tuple(p for p in parameters if p.buffer)
    after = _values(context, reference, states, step, Phase.UPDATE) if alone else {}
    return trial, Expected(
        _by_slot(context, outputs),
        grad_inputs if complete else {},
        gradients if complete else {},
        after if reference.training else {},
        min(_allowed(outputs), max(_MOST_ALLOWED, _rounding(outputs))),
        not own_gradients,
    )


def optimizer_trial(finding: Finding, context: Context) -> tuple[Trial, Expected] | str:
    """The optimizer of a finding on the reference's parameters and gradients of the first step."""
    if finding.step != 1:
        return "not tried: an optimizer's state before a later step is not in the dump"
    optimizers = context.reference.run.optimizers
    names = optimizers[0].parameters[0] if optimizers and optimizers[0].parameters else ()
    known = {p.name: p for p in context.reference.run.parameters}
    before: dict[str, Array] = {}
    given: dict[str, Array] = {}
    after: dict[str, Array] = {}
    room = MOST_ELEMENTS
    for name in names:
        where = {Role.PARAMETER: Phase.FORWARD, Role.GRAD_APPLIED: Phase.UPDATE}
        own = [
            _own(context, name, role, 1, phase)
            for role, phase in (*where.items(), (Role.PARAMETER, Phase.UPDATE))
        ]
        if name not in known or any(one is None for one in own):
            continue
        arrays = [context.reference.load(one) for one in own if one is not None]
        room -= arrays[0].size
        if room < 0:
            break
        before[name], given[name], after[name] = arrays
    if not before:
        return "not tried: the step's gradients are not in the dump"
    trial = Trial(
        Call("", (), of_parameters=True),
        None,
        tuple(known[name] for name in before),
        before,
        gradients=given,
    )
    moved = {name: after[name] - before[name] for name in before}
    return trial, Expected(values=moved, allowed=max(_allowed_of(finding.evidence), 1e-3))


def _inputs(reference: LayerRecord, context: Context, step: int, call: int) -> dict[str, Array]:
    """What the port's layer was fed, the reference's value wherever a slot has one."""
    paired = _by_slot(context, _compared(context, reference.name, Role.INPUT, step, call))
    partner = context.partner(reference.name)
    if partner is None:
        return paired
    for event in context.port.events:
        key = event.key
        own = (key.name, key.role, key.step, key.call, key.micro)
        if own == (partner.name, Role.INPUT, step, call, 0) and key.slot not in paired:
            if not event.has_values or _large(event):
                return {}
            paired[key.slot] = context.port.load(event)
    return dict(sorted(paired.items()))


def _compared(context: Context, name: str, role: Role, step: int, call: int) -> list[Comparison]:
    """One-to-one pairs of a layer's call, in the port's order of slots, whose values are at hand."""
    found = []
    for one in context.comparisons_of(name, role, step):
        key, pair = one.pair.first.key, one.pair
        if key.call != call or key.micro or len(pair.port) != 1:
            continue
        if all(event.has_values and not _large(event) for event in pair.reference):
            found.append(one)
    return sorted(found, key=lambda c: c.pair.port[0].key.slot)


def _by_slot(context: Context, comparisons: Iterable[Comparison]) -> dict[str, Array]:
    """The reference's tensors in the port's slots and layout."""
    found = {}
    for pair in (comparison.pair for comparison in comparisons):
        arrays = [context.reference.load(event) for event in pair.reference]
        (found[pair.port[0].key.slot],) = pair.transform.apply(arrays)
    return found


def _values(
    context: Context,
    layer: LayerRecord,
    parameters: Iterable[ParameterRecord],
    step: int,
    phase: Phase,
) -> dict[str, Array]:
    """Of the layer's parameters and buffers, by their names within it: values, or gradients."""
    found = {}
    for parameter in parameters:
        name = f"{layer.name}.{parameter.name}" if layer.name else parameter.name
        role = Role.BUFFER if parameter.buffer else Role.PARAMETER
        if phase is Phase.BACKWARD:
            role = Role.GRAD
        event = _own(context, name, role, step, phase)
        if event is not None:
            found[parameter.name] = context.reference.load(event)
    return found


def _own(context: Context, name: str, role: Role, step: int, phase: Phase) -> Event | None:
    """One of the reference's events, of the comparisons where it has one there (a replay's)."""
    for comparison in context.comparisons_of(name, role, step):
        event = comparison.pair.first
        if event.key.phase is phase and len(comparison.pair.reference) == 1:
            return event if event.has_values and not _large(event) else None
    return next(
        (
            event
            for event in context.reference.events
            if (event.key.name, event.key.role, event.key.step, event.key.phase)
            == (name, role, step, phase)
            and event.has_values
            and not _large(event)
        ),
        None,
    )


def _of_layer(finding: Finding, layer: LayerRecord) -> bool:
    return finding.evidence is not None and finding.evidence.pair.first.key.name == layer.name


def _allowed(comparisons: Sequence[Comparison]) -> float:
    return max([_rounding(comparisons), *(_allowed_of(one) for one in comparisons)])


def _rounding(comparisons: Iterable[Comparison]) -> float:
    return rounding(e.dtype for c in comparisons for e in (*c.pair.reference, *c.pair.port))


def _allowed_of(comparison: Comparison | None) -> float:
    """The relative error that a comparison's verdict allows."""
    if comparison is None or comparison.allowance is None or comparison.metrics is None:
        return 0.0
    norm = comparison.metrics.reference_l2
    return comparison.allowance.l2 / norm if norm and np.isfinite(norm) else 0.0


def _large(event: Event) -> bool:
    return int(np.prod(event.shape, dtype=np.int64)) > MOST_ELEMENTS
