"""The ladder: judges everything that was compared, rung by rung, and gathers origins into findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from paritydbg.measure.noise import MeasuredNoise, ModelledNoise, Noise
from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Phase
from paritydbg.model.finding import AttributeDifference, Finding
from paritydbg.model.pair import Alignment, LayerPair
from paritydbg.model.record import LayerRecord
from paritydbg.model.report import Coverage
from paritydbg.model.source import EventSource
from paritydbg.verdict.compare import compare, compare_pair
from paritydbg.verdict.coverage import coverage
from paritydbg.verdict.findings import gather
from paritydbg.verdict.precision import precision_findings
from paritydbg.verdict.repeated import repeated_notes
from paritydbg.verdict.replay import (
    Replay,
    joined_comparisons,
    joined_judgements,
    joined_updates,
    replayed_pairs,
)
from paritydbg.verdict.scaling import loss_scales
from paritydbg.verdict.static import structure_findings, unplaced_note
from paritydbg.verdict.told import Told
from paritydbg.verdict.walk import Walk

AttributeDifferences = Callable[[LayerRecord, LayerRecord], tuple[AttributeDifference, ...]]


@dataclass(frozen=True)
class Diagnosis:
    """Everything that comparing told.

    Attributes:
        findings: ordered by the ladder.
        suspects: above rounding, below what matters, unexplained.
        comparisons: with final verdicts, in the reference's order of execution.
        coverage: how much was looked at.
        notes: remarks in sentences.
    """

    findings: tuple[Finding, ...]
    suspects: tuple[Finding, ...]
    comparisons: tuple[Comparison, ...]
    coverage: Coverage
    notes: tuple[str, ...]


def find(
    alignment: Alignment,
    compared: tuple[Comparison, ...],
    reference: EventSource,
    port: EventSource,
    *,
    attribute_differences: AttributeDifferences,
    noise: Noise | None = None,
    replay: Replay | None = None,
) -> Diagnosis:
    """The findings on two aligned and compared runs.

    Args:
        compared: a comparison for every pair of the alignment.
        attribute_differences: tells what two layers were told differently; it decides whether a
            difference that is too small to matter has a reason.
        noise: rounding errors, modelled unless given.
        replay: forced replays of the two, which tell each layer's own error from what came in.
    """
    noise = noise or ModelledNoise()
    compared, scaled = _without_loss_scale(compared, reference, port, noise)
    walk = Walk(alignment, compared, reference, port, noise)
    walk.run()
    differences = _differences(alignment.layers, reference, port, attribute_differences)
    walk.confirm(differences)
    walk.blame_losses()
    partners = {pair.reference: pair.port for pair in alignment.layers}
    static = (
        *structure_findings(alignment, reference.run, port.run),
        *precision_findings(compared, partners),
    )
    told, notes = walk.told(), tuple(walk.notes)
    if replay is not None:
        told, notes = _with_replay(told, alignment, replay, noise, differences)
        notes = (*notes, *repeated_notes(reference, port, replay))
    findings, suspects = gather(told, alignment, differences, static)
    final = joined_comparisons(compared, told.judged)
    note = unplaced_note(alignment, reference.run, port.run)
    return Diagnosis(
        findings=findings,
        suspects=suspects,
        comparisons=final,
        coverage=coverage(alignment, compared, told.judged, told.flow, (reference, port)),
        notes=(
            *scaled,
            *notes,
            *((note,) if note else ()),
            *_notes(
                alignment, reference, port, replay is not None and bool(replay.reference.run.noise)
            ),
        ),
    )


def _with_replay(
    told: Told,
    alignment: Alignment,
    replay: Replay,
    noise: Noise,
    differences: dict[str, tuple[AttributeDifference, ...]],
) -> tuple[Told, tuple[str, ...]]:
    """What the free run told, with the replay's judgements in their place; and a remark."""
    pairs = replayed_pairs(alignment, replay)
    records = replay.reference.run.noise
    noise = MeasuredNoise(records) if records else noise
    compared = compare(pairs, replay.reference, replay.port, noise)
    compared, _ = _without_loss_scale(compared, replay.reference, replay.port, noise)
    walk = Walk(pairs, compared, replay.reference, replay.port, noise, forced=True)
    walk.run()
    walk.confirm(differences)
    walk.blame_losses()
    fed = walk.told()
    judged = joined_judgements(told.judged, fed.judged, told.flow)
    updates = joined_updates(told.updates, fed.updates, judged)
    notes = [f"{len(compared):,} tensors were judged on the reference's own inputs (forced replay)"]
    if records:
        runs = max(record.runs for record in records)
        exact = sum(record.exact is not None for record in records)
        notes.append(
            f"rounding of {len(records):,} tensors was measured on the reference, run {runs} times "
            "with values moved in their last bit"
            + (f", and of {exact:,} against float64" if exact else "")
        )
    return replace(told, judged=judged, updates=updates), tuple(notes)


def _without_loss_scale(
    compared: tuple[Comparison, ...], reference: EventSource, port: EventSource, noise: Noise
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """The comparisons with a loss scale of one side alone taken out of its gradients, and a remark."""
    scales = loss_scales(compared, reference.run, port.run)
    if not scales:
        return compared, ()
    done = tuple(
        compare_pair(c.pair, reference, port, noise, scale.factor)
        if (scale := scales.get(c.pair.first.key.step)) is not None and scale.applies_to(c)
        else c
        for c in compared
    )
    factors = ", ".join(f"{s.factor:.6g} in step {step}" for step, s in scales.items())
    return done, (
        f"the port's gradients are larger by one factor, a loss scale that is out before the update "
        f"({factors}); they were compared without it",
    )


def _differences(
    pairs: Iterable[LayerPair],
    reference: EventSource,
    port: EventSource,
    attribute_differences: AttributeDifferences,
) -> dict[str, tuple[AttributeDifference, ...]]:
    mine = {layer.name: layer for layer in reference.run.layers}
    yours = {layer.name: layer for layer in port.run.layers}
    return {
        pair.reference: found
        for pair in pairs
        if pair.reference in mine and pair.port in yours
        if (found := attribute_differences(mine[pair.reference], yours[pair.port]))
    }


def _notes(
    alignment: Alignment, reference: EventSource, port: EventSource, measured: bool
) -> tuple[str, ...]:
    notes = []
    if not measured:
        notes.append("rounding was modelled from dtypes and sizes, not measured")
    steps = [sorted({event.key.step for event in source.events}) for source in (reference, port)]
    if steps[0] != steps[1] and set(steps[0]) & set(steps[1]):
        notes.append(f"compared are the steps that both sides have (of {steps[0]} and {steps[1]})")
    for source, side in ((reference, "reference"), (port, "port")):
        if not any(event.key.phase is Phase.BACKWARD for event in source.events):
            notes.append(f"the {side}'s dump has no backward pass")
        if not source.run.complete:
            notes.append(f"the {side}'s run was cut short: {source.run.ended or 'it was killed'}")
    if alignment.moved:
        notes.append(f"these layers run in another order in the port: {', '.join(alignment.moved)}")
    return tuple(notes)
