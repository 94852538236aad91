"""Causes in pooling: what is averaged or maximised over, told by the values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from paritydbg.explain.causes.forms import Form, Recognised, Weights, recognise
from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context, Floats
from paritydbg.explain.padding import per_axis
from paritydbg.model.finding import Cause, Finding
from paritydbg.model.record import LayerRecord


@dataclass(frozen=True)
class Window:
    """A pool's geometry along its spatial axes, all tuples of one length.

    Attributes:
        kernel, stride: sizes.
        before, after: padding at the near and the far edge.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def __str__(self) -> str:
        pads = f"padding {self.before}"
        if self.after != self.before:
            pads = f"padding {self.before} before and {self.after} behind"
        return f"kernel {self.kernel}, stride {self.stride}, {pads}"


def pool_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """Which border, divisor or kind of pool each side turns out to use."""
    axes = site.port.ndim - 2
    if axes not in (1, 2, 3):
        return
    forms = tuple(_forms(axes, context.layers_of(finding), site))
    for found in recognise(site, forms):
        yield Cause(
            _slug(found),
            f"the reference computes {found.reference.words}, the port {found.port.words}",
            found.evidence,
            found.confidence,
        )
        return


def _slug(found: Recognised) -> str:
    mine, yours = found.reference, found.port
    if mine.kind != yours.kind:
        return "pool-kind-differs"
    if mine.kind == "average" and mine.settings["window"] == yours.settings["window"]:
        return "avgpool-count-include-pad"
    if mine.kind == "max":
        return "maxpool-same-vs-symmetric-padding"
    return "avgpool-same-vs-symmetric-padding"


def _forms(
    axes: int, layers: tuple[LayerRecord | None, LayerRecord | None], site: Site
) -> Iterator[Form]:
    lengths = site.port.shape[2:]
    for window in dict.fromkeys(_windows(axes, layers, site)):
        if all(length >= 1 for length in lengths):
            yield _pool(window, "max")
            yield _pool(window, "average", count_padding=True)
            if any(window.before) or any(window.after):
                yield _pool(window, "average", count_padding=False)


def _windows(
    axes: int, layers: tuple[LayerRecord | None, LayerRecord | None], site: Site
) -> Iterator[Window]:
    """Geometries that the records tell, then the common ones; with the borders of both frameworks."""
    sizes: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = []
    for layer in layers:
        kernel = per_axis(layer.attribute("kernel_size"), axes) if layer else None
        if layer is None or kernel is None:
            continue
        stride = per_axis(layer.attribute("stride"), axes) or kernel
        sizes.append((kernel, stride, per_axis(layer.attribute("padding"), axes) or (0,) * axes))
    for one, step, pad in ((2, 2, 0), (3, 2, 1), (3, 2, 0), (3, 1, 1), (2, 1, 0)):
        sizes.append(((one,) * axes, (step,) * axes, (pad,) * axes))
    for kernel, stride, padding in sizes:
        yield Window(kernel, stride, padding, padding)
        for source in site.sources[:1]:
            same = _same_border(source.port.shape[2:], kernel, stride)
            if same is not None and len(source.port.shape) == axes + 2:
                yield Window(kernel, stride, *same)


def _same_border(
    lengths: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    if len(lengths) != len(kernel):
        return None
    totals = [
        max((-(-n // s) - 1) * s + k - n, 0)
        for n, k, s in zip(lengths, kernel, stride, strict=True)
    ]
    before = tuple(total // 2 for total in totals)
    return before, tuple(t - b for t, b in zip(totals, before, strict=True))


def _pool(window: Window, kind: str, count_padding: bool = True) -> Form:
    def value(x: Floats, _weights: Weights) -> Floats | None:
        fill = -np.inf if kind == "max" else 0.0
        seen = _unfolded(x, window, fill)
        if seen is None:
            return None
        inner = tuple(range(-len(window.kernel), 0))
        if kind == "max":
            return np.asarray(seen.max(axis=inner))
        total = seen.sum(axis=inner)
        if count_padding:
            return np.asarray(total / np.prod(window.kernel))
        ones = _unfolded(np.ones_like(x[:1, :1]), window, 0.0)
        return None if ones is None else np.asarray(total / ones.sum(axis=inner))

    words = f"{'max' if kind == 'max' else 'average'} pooling of {window}"
    if kind == "average" and (any(window.before) or any(window.after)):
        words += ", padding counted" if count_padding else ", padding not counted"
    return Form(words, kind, value, {"window": str(window)})


def _unfolded(x: Floats, window: Window, fill: float) -> Floats | None:
    """The windows of x along new last axes, None where there are none."""
    if x.ndim != len(window.kernel) + 2:
        return None
    pads = [(0, 0), (0, 0), *zip(window.before, window.after, strict=True)]
    padded = np.pad(x, pads, constant_values=fill)
    axes = tuple(range(2, x.ndim))
    if any(padded.shape[a] < k for a, k in zip(axes, window.kernel, strict=True)):
        return None
    seen = sliding_window_view(padded, window.kernel, axis=axes)  # type: ignore[call-overload]
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in window.stride))
    return np.asarray(seen[steps])
