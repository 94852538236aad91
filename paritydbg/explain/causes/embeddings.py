"""Causes in an embedding's gradient: rows that get none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paritydbg.explain.causes.site import LEFT
from paritydbg.explain.context import Context, Sides
from paritydbg.model.finding import Cause, Finding


def row_causes(finding: Finding, context: Context, sides: Sides) -> Iterator[Cause]:
    """An embedding's gradient that differs in one row alone."""
    owner = context.owner(finding.place)
    if owner is None or "Embedding" not in owner.type or sides.port.ndim != 2:
        return
    differs = np.flatnonzero(np.any(np.abs(sides.port - sides.reference) > 0, axis=1))
    sizes = np.linalg.norm(sides.port - sides.reference, axis=1)
    if not differs.size:
        return
    worst = int(sizes.argmax())
    rest = float(np.linalg.norm(np.delete(sizes, worst))) / float(sizes[worst])
    if rest <= LEFT and not (sides.reference[worst].any() and sides.port[worst].any()):
        side = "reference" if not sides.reference[worst].any() else "port"
        yield Cause(
            "embedding-padding-gradient",
            f"only row {worst} differs, which gets no gradient in the {side}: padding_idx is set "
            "there alone",
            f"row {worst}: norm {np.linalg.norm(sides.reference[worst]):.3g} in the reference, "
            f"{np.linalg.norm(sides.port[worst]):.3g} in the port",
            0.9,
        )
