"""Causes where a tensor is used more than once and one use gives no gradient back."""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np

from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.site import LEFT
from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Event, EventKey, Role
from paritydbg.model.finding import Cause, Finding


def branch_causes(finding: Finding, context: Context, sides: Sides, gap: float) -> Iterator[Cause]:
    """The port's gradient is that of one use alone, or lacks the share of one."""
    owner = context.owner(finding.place)
    glue = finding.place.startswith(("before ", "after "))
    if owner is not None and owner.leaf and not glue:
        # A single layer has one path: what reaches it goes through it.
        return
    lost = sides.reference - sides.port
    cut: Cause | None = None
    whole = exchanged = ""
    no_shares = _no_shares(finding, context)
    for event, words, share in _shares(finding, context, sides.port.shape):
        alone = float(np.linalg.norm(sides.port - share)) / gap
        without = float(np.linalg.norm(lost - share)) / gap
        # A tensor that another layer hands on as it is has the same gradient there, and a sum hands it
        # back to each of its terms.
        share_of_it = event.key not in no_shares
        if share_of_it and float(np.linalg.norm(sides.reference - share)) <= LEFT * gap:
            whole = whole or words
        if alone <= LEFT:
            exchanged = exchanged or words
        if min(alone, without) <= LEFT and cut is None:
            kept = "is nothing but" if alone <= without else "is the reference's without"
            cut = Cause(
                "stop-gradient-extra",
                f"the port's gradient {kept} {words}: another path through this tensor is cut by "
                "stop_gradient (or detach)",
                f"{percent(min(alone, without))} of the difference left",
                round(0.93 - 0.5 * min(alone, without), 3),
            )
    if whole and exchanged:
        yield Cause(
            "custom-bprop-wrong",
            f"the reference is given {whole}, the port {exchanged}: a backward of its own hands the "
            "gradients to the wrong tensors",
            "both gradients are met within a tenth of the difference",
            0.92,
        )
    elif cut is not None:
        yield cut


def _shares(
    finding: Finding, context: Context, shape: tuple[int, ...]
) -> Iterator[tuple[Event, str, Floats]]:
    """Gradients of the reference's in that step that the tensor may have been given back, in words."""
    evidence = finding.evidence
    if evidence is None:
        return
    step = evidence.pair.first.key.step
    for role in (Role.GRAD_OUTPUT, Role.GRAD_INPUT):
        for comparison in context.of_role(role, step):
            other = comparison.pair.first
            if comparison.pair is evidence.pair or len(other.shape) != len(shape):
                continue
            if comparison.verdict not in (Verdict.MATCH, Verdict.INHERITED, Verdict.SUSPECT):
                continue
            wider = [
                axis for axis, (a, b) in enumerate(zip(other.shape, shape, strict=True)) if a != b
            ]
            if len(wider) > 1 or any(other.shape[axis] < shape[axis] for axis in wider):
                continue
            values = context.sides(comparison.pair)
            if values is None or values.reference.ndim != len(shape):
                continue
            name = f"the gradient at the {role.value.removeprefix('grad_')} of {other.key.place}"
            if not wider and values.reference.shape == shape:
                yield other, name, values.reference
            # What was concatenated gets its slice of the gradient back.
            for axis in wider:
                length = shape[axis]
                for start in (0, values.reference.shape[axis] - length):
                    piece = np.take(values.reference, range(start, start + length), axis=axis)
                    if piece.shape == shape:
                        words = f"entries {start} to {start + length} of axis {axis} of {name}"
                        yield other, words, piece


def _no_shares(finding: Finding, context: Context) -> Set[EventKey]:
    """Gradients that are no share of the finding's: of the very tensor, and of what it was made from."""
    if finding.evidence is None:
        return frozenset()
    key = finding.evidence.pair.first.key
    tensors = {
        event.key.gradient: event
        for event in context.reference.events
        if event.key.step == key.step and event.key.gradient is not None
    }
    mine = tensors.get(key)
    if mine is None:
        return frozenset()
    made = min(event.order for event in tensors.values() if event.digest == mine.digest)
    return {
        other
        for other, event in tensors.items()
        if other is not None and (event.digest == mine.digest or event.order < made)
    }
