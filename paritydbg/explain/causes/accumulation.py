"""Causes in gradient accumulation: how the micro-batches' gradients are joined on each side."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paritydbg.explain.causes.wiring import named_factor
from paritydbg.explain.context import Context, Floats
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause

_CLOSE = 2e-3


def accumulation_causes(names: tuple[str, ...], context: Context, step: int) -> Iterator[Cause]:
    """Several micro-batches: how their gradients are joined on each side."""
    for name in names:
        parts = _parts(name, context, step)
        given = context.sides(context.pair(name, Role.GRAD_APPLIED, step, Phase.UPDATE))
        if parts is None or given is None:
            continue
        if any(part.shape != given.port.shape for side in parts for part in side):
            continue
        mine, yours = _weights(parts[0], given.reference), _weights(parts[1], given.port)
        if mine is None or yours is None or np.allclose(mine, yours, rtol=_CLOSE):
            continue
        shown = (
            f"given to the optimizer for {name}: reference {_sum(mine)}, port {_sum(yours)}, where "
            "g1, g2 … are the micro-batches' gradients"
        )
        even = [bool(np.allclose(w, w[0], rtol=0.01)) for w in (mine, yours)]
        ratio = float(np.mean(yours)) / float(np.mean(mine))
        if even[0] and even[1]:
            yield Cause(
                "gradient-accumulation-scale",
                f"the port gives {named_factor(ratio)} times the sum that the reference gives: "
                "accumulated gradients are divided by their number on one side alone",
                shown,
                0.9,
            )
        else:
            plain = "port" if even[1] else "reference"
            other = "reference" if even[1] else "port"
            yield Cause(
                "mean-of-means",
                f"the {plain} weighs all micro-batches alike, the {other} by how much each holds: a "
                "mean of means is not the mean where they hold different numbers of tokens",
                shown,
                0.93,
            )
        return


def _parts(name: str, context: Context, step: int) -> tuple[list[Floats], list[Floats]] | None:
    """Both sides' gradients per micro-batch; a side that has the whole batch in one takes the other's."""
    own = tuple(
        [
            np.asarray(source.load(event), np.float64)
            for event in source.events
            if event.key.role is Role.GRAD
            and event.key.step == step
            and event.key.name == wanted
            and event.has_values
        ]
        for source, wanted in (
            (context.reference, name),
            (context.port, next(iter(context.partners_of_parameter(name)), "")),
        )
    )
    pair = context.pair(name, Role.GRAD_APPLIED, step, Phase.UPDATE)
    if pair is None or max(len(own[0]), len(own[1])) < 2:
        return None
    mine = [pair.transform.apply([part])[0] for part in own[0] if pair.transform.kind != "split"]
    if len(mine) > 1 and len(own[1]) > 1:
        return (mine, own[1]) if len(mine) == len(own[1]) else None
    return (own[1], own[1]) if len(own[1]) > 1 else (mine, mine)


def _weights(parts: list[Floats], whole: Floats) -> Floats | None:
    """The numbers by which the parts add up to the whole, None where they do not."""
    matrix = np.stack([part.reshape(-1) for part in parts], axis=1)
    weights, *_ = np.linalg.lstsq(matrix, whole.reshape(-1), rcond=None)
    left = float(np.linalg.norm(matrix @ weights - whole.reshape(-1)))
    return weights if left <= 1e-3 * float(np.linalg.norm(whole)) else None


def _sum(weights: Floats) -> str:
    return " + ".join(f"{w:.4g}·g{number}" for number, w in enumerate(weights, 1))
