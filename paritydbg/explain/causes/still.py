"""Causes of parameters that do not move, or move by what is not finite."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paritydbg.explain.context import Context
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause, Finding


def still_causes(finding: Finding, names: tuple[str, ...], context: Context) -> Iterator[Cause]:
    """Parameters that do not move, or move by what is not finite."""
    step = finding.step
    moved = [_moved(name, step, context) for name in names]
    seen = [m for m in moved if m is not None]
    if _not_finite(names, step, context):
        reference, port = any(m[0] for m in seen), any(m[1] for m in seen)
        if reference != port:
            who = "port" if port else "reference"
            yield Cause(
                "update-despite-overflow",
                f"gradients of step {step} overflowed, and the {who} applies them nevertheless: check "
                "all_finite(grads) and skip the step, as the other side does",
                f"step {step}: NaN or Inf in the gradients or in what became of the parameters; "
                f"parameters moved: reference {reference}, port {port}",
                0.93,
            )
        return
    if not seen or any(m[1] for m in seen) or not any(m[0] for m in seen):
        return
    before = [_moved(name, s, context) for s in range(1, step) for name in names]
    if any(m is not None and m[1] for m in before):
        yield Cause(
            "set-data-detaches-optimizer",
            "the port's optimizer moved these parameters before and no longer does: set_data or "
            "load_param_into_net after its first step gave the net new tensors; use ops.assign or "
            "Parameter.copy_, or build the optimizer afterwards",
            f"step {step}: {len(seen)} parameters unchanged in the port, bit for bit",
            0.93,
        )
        return
    record = context.port.run.optimizers[0].api if context.port.run.optimizers else "the optimizer"
    yield Cause(
        "optimizer-step-is-noop",
        f"{record} ran and changed nothing, without an error",
        f"step {step}: {len(seen)} parameters unchanged in the port, bit for bit, while the "
        "reference's moved",
        0.95,
    )


def _moved(name: str, step: int, context: Context) -> tuple[bool, bool] | None:
    before = context.sides(context.pair(name, Role.PARAMETER, step, Phase.FORWARD))
    after = context.sides(context.pair(name, Role.PARAMETER, step, Phase.UPDATE))
    if before is None or after is None:
        return None
    return (
        not np.array_equal(before.reference, after.reference, equal_nan=True),
        not np.array_equal(before.port, after.port, equal_nan=True),
    )


def _not_finite(names: tuple[str, ...], step: int, context: Context) -> bool:
    """Whether a gradient of the step, or a parameter after it, holds NaN or Inf on either side."""
    for role, phase in (
        (Role.GRAD, Phase.BACKWARD),
        (Role.GRAD_APPLIED, Phase.UPDATE),
        (Role.PARAMETER, Phase.UPDATE),
    ):
        for name in names:
            values = context.sides(context.pair(name, role, step, phase))
            if values is None:
                continue
            if not (np.isfinite(values.reference).all() and np.isfinite(values.port).all()):
                return True
    return False
