"""Causes in masks and softmax rows: which entries each side leaves out, told by the values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding

# Below this an additive mask leaves an entry out.
_LEAVES_OUT = -100.0


def mask_causes(_finding: Finding, _context: Context, site: Site) -> Iterable[Cause]:
    """A mask that one side lacks, inverts or shifts; rows that are masked throughout."""
    found = tuple(_mask(site))
    yield from found
    if not found:
        yield from _lost_rows(site)


def _mask(site: Site) -> Iterator[Cause]:
    kept = _kept(site.reference)
    if kept is None:
        return
    shown = f"the reference leaves out {int((~kept).sum())} of {kept.size} entries"
    if (site.port == site.port.flat[0]).all():
        yield Cause(
            "mask-missing",
            "the port's mask leaves nothing out: it is the same number everywhere",
            f"{shown}, the port holds {site.port.flat[0]:g} throughout",
            0.95,
        )
        return
    other = _kept(site.port)
    if other is None:
        return
    shown += f", the port {int((~other).sum())}"
    if (kept == ~other).all():
        yield Cause(
            "mask-sign",
            "the port leaves out what the reference keeps, and the other way round: True means "
            "another thing",
            shown,
            0.96,
        )
        return
    moved = _diagonal(kept), _diagonal(other)
    if moved[0] is not None and moved[1] is not None and moved[0] != moved[1]:
        yield Cause(
            "causal-off-by-one",
            f"the port's causal mask begins at diagonal {moved[1]}, the reference's at {moved[0]}",
            shown,
            0.96,
        )


def _kept(values: Floats) -> NDArray[np.bool_] | None:
    """Which entries a mask keeps, None where the values are no mask."""
    finite = np.unique(values)
    if len(finite) != 2 or np.isnan(finite).any():
        return None
    low, high = float(finite[0]), float(finite[1])
    if high == 0.0 and low < _LEAVES_OUT:
        return np.asarray(values == 0)
    if (low, high) == (0.0, 1.0):
        return np.asarray(values == 1)
    return None


def _diagonal(kept: NDArray[np.bool_]) -> int | None:
    """The first diagonal that a triangular mask leaves out, None for any other mask."""
    if kept.ndim < 2 or kept.shape[-1] != kept.shape[-2]:
        return None
    flat = kept.reshape(-1, *kept.shape[-2:])
    length = flat.shape[-1]
    for first in range(-1, 4):
        if (flat == ~np.triu(np.ones((length, length), bool), k=first)).all():
            return first
    return None


def _lost_rows(site: Site) -> Iterator[Cause]:
    """Rows that softmax could not fill: masked by -inf throughout."""
    if site.port.ndim < 2:
        return
    lost = _no_row(site.reference), _no_row(site.port)
    differs = lost[0] != lost[1]
    if not differs.any() or not _probabilities(site, lost):
        return
    side = "port" if lost[1][differs].any() else "reference"
    other = site.reference if side == "port" else site.port
    # A row that is masked by a finite number is left uniform by softmax.
    uniform = (other == other[..., :1]).all(axis=-1)
    if not (uniform & differs).any() and not np.isnan(site.port).any():
        return
    yield Cause(
        "masked-row-minus-inf",
        f"softmax gives no probabilities in the {side} for rows that are masked throughout: -inf in "
        "every place leaves 0/0, or on MindSpore's CPU whatever lay in memory; mask with the "
        "dtype's smallest number on both sides",
        f"rows that are no probabilities: reference {int(lost[0].sum())}, port "
        f"{int(lost[1].sum())} of {lost[0].size}",
        0.9,
    )


def _no_row(values: Floats) -> NDArray[np.bool_]:
    """Rows that do not add up to 1, or hold what is no probability."""
    with np.errstate(invalid="ignore"):
        sums = np.abs(values.sum(axis=-1) - 1.0) < 1e-3
        inside = ((values > -1e-6) & (values < 1 + 1e-6)).all(axis=-1)
    return np.asarray(~(sums & inside))


def _probabilities(site: Site, lost: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> bool:
    """Whether most rows are probabilities on one of the sides at least, and the others agree."""
    return min(float(lost[0].mean()), float(lost[1].mean())) < 0.5 and site.port.shape[-1] > 1
