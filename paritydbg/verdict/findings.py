"""Gathers origins into findings, in the ladder's order; that they are origins was judged before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.finding import AttributeDifference, Finding, Stage
from paritydbg.model.pair import Alignment
from paritydbg.verdict.folding import folded
from paritydbg.verdict.harmless import harmless, initial, reparametrised
from paritydbg.verdict.judge import MATTERS, Judged
from paritydbg.verdict.merging import alike, merged, rung
from paritydbg.verdict.places import place_of, stage_of
from paritydbg.verdict.told import Told
from paritydbg.verdict.update_findings import update_findings
from paritydbg.verdict.updates import Update

Differences = Mapping[str, tuple[AttributeDifference, ...]]

_OF_PARAMETERS = (Role.PARAMETER, Role.GRAD, Role.GRAD_APPLIED)
# States that explain an update and are no place of their own while updates were seen.
_EXPLAINING = ("lr", "loss_scale")


def gather(
    told: Told, alignment: Alignment, differences: Differences, structure: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Findings and suspects, each once, the first divergence first."""
    origins = [one for one in told.judged if one.origin]
    # What a finding on structure says of a parameter explains its gradients and updates.
    explained = {name for finding in structure for name in (finding.place, *finding.also)}
    origins = [
        one
        for one in origins
        if not (one.event.key.role in _OF_PARAMETERS and one.event.key.name in explained)
        and not harmless(one, told)
    ]
    kept, into = folded(origins, told.flow)
    origins = list(kept)
    layers = {pair.reference: pair.port for pair in alignment.layers}
    found = list(structure)
    if not reparametrised(origins, told):
        found += _weights(origins)
    found += [_extra(event, name, layers) for event, name in told.one_sided.extra]
    found += update_findings(origins, told.judged, told.updates)
    found += _statistics(origins)
    measured = {one.event.key.name for one in origins if one.event.key.role is Role.OUTPUT}
    found += _rates(differences, layers, measured)
    for one in origins:
        if _stands_alone(one, told.updates):
            finding = _finding(one, told, differences, layers)
            found.append(_with(finding, into.get(one.event, ()), told))
    findings = merged(sorted(found, key=rung))
    inherited = sum(
        one.comparison is not None and one.comparison.verdict is Verdict.INHERITED
        for one in told.free
    )
    if findings:
        findings[0] = replace(findings[0], followers=inherited)
    suspects = [
        _finding(one, told, differences, layers)
        for one in told.judged
        if one.comparison is not None and one.comparison.verdict is Verdict.SUSPECT
    ]
    places = {finding.place for finding in findings}
    fresh = {f.place: f for f in reversed(suspects) if f.place not in places}
    return tuple(findings), tuple(reversed(fresh.values()))


def _with(finding: Finding, others: Iterable[Judged], told: Told) -> Finding:
    """The finding with the places of what was folded into it."""
    places = (place_of(one, told.flow, told.reference, told.agrees) for one in others)
    also = dict.fromkeys((*finding.also, *places))
    also.pop(finding.place, None)
    return replace(finding, also=tuple(also))


def _stands_alone(one: Judged, updates: Mapping[Event, Update]) -> bool:
    """Whether an origin makes a finding of its own, not one gathered with others of its kind."""
    key = one.event.key
    if key.role in (Role.PARAMETER, Role.BUFFER, Role.GRAD_APPLIED):
        return False
    if key.role is not Role.STATE or key.name.partition(".")[0] not in _EXPLAINING:
        return True
    of_step = [update for event, update in updates.items() if event.key.step == key.step]
    # Where most updates of the step could not be judged, the state is all that tells.
    unjudged = sum(update.comparison.verdict is Verdict.INHERITED for update in of_step)
    return 2 * unjudged >= len(of_step)


def _finding(
    one: Judged, told: Told, differences: Differences, layers: Mapping[str, str]
) -> Finding:
    event, comparison = one.event, one.comparison
    stage, place = stage_of(event, told.flow), place_of(one, told.flow, told.reference, told.agrees)
    attributes: tuple[AttributeDifference, ...] = ()
    if event.key.role in (Role.OUTPUT, Role.GRAD_INPUT):
        attributes = differences.get(event.key.name, ())
        if event.key.role is Role.OUTPUT and any(d.name == "training" for d in attributes):
            stage = Stage.CONFIG
    agree = one.inherited < MATTERS
    return Finding(
        stage=stage,
        verdict=comparison.verdict if comparison is not None else Verdict.DIVERGED,
        place=place,
        port_place=_port_place(one, place, layers),
        summary=_summary(one, place, stage),
        phase=event.key.phase,
        step=event.key.step,
        evidence=comparison,
        inputs_agree=agree if event.key.role in _FED else None,
        attributes=attributes,
        also=alike(event.key.name, attributes, differences),
    )


_FED = (Role.OUTPUT, Role.GRAD_INPUT, Role.GRAD, Role.LOSS, Role.INPUT, Role.GRAD_OUTPUT)


def _summary(one: Judged, place: str, stage: Stage) -> str:
    role = one.event.key.role
    if one.missing:
        if role is Role.GRAD:
            return f"{place} gets a gradient in the reference and none in the port"
        layer = place.removeprefix("after ")
        return f"no gradient reaches the output of {layer} in the port, and parameters before it get none"
    if one.comparison is not None and one.comparison.verdict is Verdict.SHAPE:
        return f"{place}: {one.comparison.reason}"
    if one.comparison is not None and one.comparison.verdict is Verdict.NONFINITE:
        return f"{place} is the first place with NaN or Inf on one side alone"
    texts = {
        Role.BATCH: f"the two sides are fed different values of {one.event.key.name}",
        Role.INPUT: f"what reaches {place.removeprefix('before ')} differs though everything "
        "before it agrees: the code in front of it computes something else",
        Role.OUTPUT: f"{place} is the first layer whose output differs though what goes in agrees",
        Role.LOSS: "the loss differs though the net's outputs agree",
        Role.GRAD_OUTPUT: "the gradient that arrives at the output of "
        f"{place.removeprefix('after ')} differs though everything behind it agrees"
        if place.startswith("after ")
        else f"the gradient that {place} sends back differs though the one that reaches it agrees",
        Role.GRAD_INPUT: f"{place} is the first layer, walking back from the loss, whose gradient "
        "differs though the one that reaches it agrees",
        Role.GRAD: f"the gradient of {place} differs though the layer's own gradients agree",
        Role.STATE: f"{place} differs though the parameters agree",
    }
    return texts.get(role, f"{place} differs ({stage.value})")


def _port_place(one: Judged, place: str, layers: Mapping[str, str]) -> str:
    if one.comparison is not None and not place.startswith(("before", "after", "inputs", "state")):
        key = one.comparison.pair.port[0].key
        if key.name and one.event.key.role is not Role.GRAD_OUTPUT:
            return key.place
    name = place.removeprefix("before ").removeprefix("after ").split("#")[0]
    return layers.get(name, "")


def _weights(origins: Iterable[Judged]) -> list[Finding]:
    """Values that differ before the first step: one finding for all of them."""
    found = initial(origins)
    if not found:
        return []
    names = tuple(dict.fromkeys(one.event.key.name for one in found))
    first = found[0]
    many = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return [
        Finding(
            stage=Stage.WEIGHTS,
            verdict=_verdict(first),
            place=names[0],
            port_place=_partner(first),
            summary=f"{names[0]}{many} differ before the first step: give the port the reference's "
            "weights"
            if len(names) > 1
            else f"{names[0]} differs before the first step",
            step=first.event.key.step,
            evidence=first.comparison,
            static=True,
            also=names[1:],
        )
    ]


def _statistics(origins: Iterable[Judged]) -> list[Finding]:
    """Buffers that differ after a step: one finding per step."""
    by_step: dict[int, list[Judged]] = {}
    for one in origins:
        if one.event.key.role is Role.BUFFER and one.event.key.phase is Phase.UPDATE:
            by_step.setdefault(one.event.key.step, []).append(one)
    return [
        Finding(
            stage=Stage.RUNNING_STATS,
            verdict=_verdict(found[0]),
            place=found[0].event.key.name,
            port_place=_partner(found[0]),
            summary=f"{found[0].event.key.name} differs after the step though what the layer was "
            "fed agrees",
            phase=Phase.UPDATE,
            step=step,
            evidence=found[0].comparison,
            inputs_agree=True,
            also=tuple(one.event.key.name for one in found[1:]),
        )
        for step, found in by_step.items()
    ]


def _rates(
    differences: Differences, layers: Mapping[str, str], measured: Set[str]
) -> list[Finding]:
    """Dropout rates that differ where values cannot tell: masks are switched off, or lie behind others.

    Args:
        measured: layers whose output is an origin already.
    """
    found = {
        name: told
        for name, of_layer in differences.items()
        if name not in measured
        and (told := tuple(d for d in of_layer if d.cause == "dropout-keep-prob"))
    }
    if not found:
        return []
    name, *others = found
    return [
        Finding(
            stage=Stage.CONFIG,
            verdict=Verdict.DIVERGED,
            place=name or "(net)",
            port_place=layers.get(name, ""),
            summary=f"{name or 'the net'} drops at another rate than in the reference",
            attributes=found[name],
            static=True,
            also=tuple(others),
        )
    ]


def _extra(event: Event, name: str, layers: Mapping[str, str]) -> Finding:
    return Finding(
        stage=Stage.BACKWARD,
        verdict=Verdict.UNPAIRED,
        place=name,
        port_place=event.key.name,
        summary=f"{name} gets a gradient in the port and none in the reference",
        phase=Phase.BACKWARD,
        step=event.key.step,
    )


def _verdict(one: Judged) -> Verdict:
    return one.comparison.verdict if one.comparison is not None else Verdict.DIVERGED


def _partner(one: Judged) -> str:
    return one.comparison.pair.port[0].key.name if one.comparison is not None else ""
