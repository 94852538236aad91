"""Causes in whole numbers that lead into a layer: positions and ids counted from somewhere else."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context
from paritydbg.model.finding import Cause, Finding


def index_causes(finding: Finding, _context: Context, site: Site) -> Iterable[Cause]:
    """Ids that are all off by one number, or that count another way."""
    mine, yours = site.reference, site.port
    if not (_whole(mine) and _whole(yours)) or mine.size < 2:
        return
    moved = np.unique(yours - mine)
    counting = mine.ndim > 0 and mine.shape[-1] > 1 and bool((np.diff(mine, axis=-1) == 1).all())
    if len(moved) == 1:
        yield Cause(
            "position-ids-offset" if counting else "index-offset",
            f"the port's {'positions' if counting else 'ids'} are the reference's {moved[0]:+g}: "
            "they are counted from another number",
            f"every element differs by {moved[0]:+g}; the reference's begin with "
            f"{mine.reshape(-1)[:4].astype(int).tolist()}",
            0.95,
        )
    elif counting:
        yield Cause(
            "position-ids-offset",
            "the reference counts positions one by one, the port otherwise",
            f"first row: reference {mine.reshape(-1, mine.shape[-1])[0][:8].astype(int).tolist()}, "
            f"port {yours.reshape(-1, yours.shape[-1])[0][:8].astype(int).tolist()}",
            0.8,
        )


def _whole(values: np.ndarray) -> bool:  # type: ignore[type-arg]
    finite = np.isfinite(values).all()
    return bool(finite) and bool((values == np.round(values)).all()) and np.abs(values).max() > 1
