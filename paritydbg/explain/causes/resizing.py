"""Causes in resizing: corners, half-pixel centres and the rounding of nearest, told by the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.forms import Form, Recognised, Weights, recognise
from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding

# Output positions -> positions in the input, given both lengths.
_CENTRES: dict[str, Callable[[Floats, int, int], Floats]] = {
    "half-pixel centres": lambda at, source, wanted: (at + 0.5) * source / wanted - 0.5,
    "aligned corners": lambda at, source, wanted: at * (source - 1) / max(wanted - 1, 1),
    "top-left corners": lambda at, source, wanted: at * source / wanted,
}
# The free number of cubic convolution: torch's and the one of MindSpore's bicubic.
_CUBIC = (-0.75, -0.5)


def resize_causes(finding: Finding, _context: Context, site: Site) -> Iterable[Cause]:
    """Which resize each side turns out to do."""
    if site.port.ndim not in (3, 4):
        return
    wanted = site.port.shape[2:]
    for found in recognise(site, _forms(wanted)):
        yield Cause(
            _slug(found),
            f"the reference resizes by {found.reference.words}, the port by {found.port.words}",
            found.evidence,
            found.confidence,
        )
        return


def _slug(found: Recognised) -> str:
    mine, yours = found.reference, found.port
    if mine.kind != yours.kind:
        return "resize-mode"
    if mine.kind == "nearest":
        return "resize-nearest-rounding"
    if "aligned corners" in (mine.settings["centres"], yours.settings["centres"]):
        return "resize-align-corners"
    if mine.settings["centres"] != yours.settings["centres"]:
        return "resize-half-pixel-centers"
    return "resize-cubic-coefficient"


def _forms(wanted: tuple[int, ...]) -> tuple[Form, ...]:
    forms = []
    for centres in _CENTRES:
        forms.append(_form("bilinear", centres, wanted, _linear))
        for a in _CUBIC:
            forms.append(_form("bicubic", centres, wanted, _cubic(a), f" (a = {a:g})"))
    for rounding, function in (
        ("floor", np.floor),
        ("half down", _half_down),
        ("half up", _half_up),
    ):
        for centres in _CENTRES:
            forms.append(_form("nearest", centres, wanted, _nearest(function), f", {rounding}"))
    return tuple(forms)


Matrix = Callable[[Floats, int], Floats]


def _form(kind: str, centres: str, wanted: tuple[int, ...], matrix: Matrix, more: str = "") -> Form:
    def value(x: Floats, _weights: Weights) -> Floats | None:
        if x.ndim != len(wanted) + 2 or x.shape[2:] == wanted:
            return None
        for axis, length in enumerate(wanted, 2):
            at = _CENTRES[centres](np.arange(length, dtype=np.float64), x.shape[axis], length)
            weights = matrix(at, x.shape[axis])
            x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights.T, -1, axis)
        return x

    return Form(f"{kind} with {centres}{more}", kind, value, {"centres": centres, "more": more})


def _linear(at: Floats, length: int) -> Floats:
    at = np.clip(at, 0.0, length - 1.0)
    low = np.floor(at).astype(np.intp)
    return _rows(length, at.size, ((low, 1 - (at - low)), (low + 1, at - low)))


def _cubic(a: float) -> Matrix:
    def near(d: Floats) -> Floats:
        return np.asarray(((a + 2) * d - (a + 3)) * d * d + 1)

    def far(d: Floats) -> Floats:
        return np.asarray(((a * d - 5 * a) * d + 8 * a) * d - 4 * a)

    def matrix(at: Floats, length: int) -> Floats:
        low = np.floor(at).astype(np.intp)
        part = at - low
        return _rows(
            length,
            at.size,
            (
                (low - 1, far(part + 1)),
                (low, near(part)),
                (low + 1, near(1 - part)),
                (low + 2, far(2 - part)),
            ),
        )

    return matrix


def _nearest(rounded: Callable[[Floats], Floats]) -> Matrix:
    def matrix(at: Floats, length: int) -> Floats:
        index = rounded(at + 1e-9).astype(np.intp)
        return _rows(length, at.size, ((index, np.ones(at.size)),))

    return matrix


def _half_down(at: Floats) -> Floats:
    return np.asarray(np.ceil(at - 0.5 - 1e-6))


def _half_up(at: Floats) -> Floats:
    return np.asarray(np.floor(at + 0.5))


def _rows(length: int, count: int, parts: Iterable[tuple[NDArray[np.intp], Floats]]) -> Floats:
    """A matrix with the given weights at the given columns; columns beyond the edge count as the edge."""
    found = np.zeros((count, length))
    for columns, weights in parts:
        np.add.at(found, (np.arange(count), np.clip(columns, 0, length - 1)), weights)
    return found
