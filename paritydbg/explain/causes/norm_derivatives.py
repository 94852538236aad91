"""Causes in a normalisation's own backward: statistics that gradients should have gone through."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from paritydbg.explain.causes.derivatives import gradient_site
from paritydbg.explain.causes.forms import Weights, percent
from paritydbg.explain.causes.site import LEFT
from paritydbg.explain.causes.weights_of import weights_of
from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.finding import Cause, Finding

_EPS_NAMES = ("eps", "epsilon", "variance_epsilon")
Backward = Callable[[Floats, Floats, Floats, float], Floats]


def norm_derivative_causes(finding: Finding, context: Context, sides: Sides) -> Iterable[Cause]:
    """Which parts of a norm's backward each side takes."""
    found = gradient_site(finding, context, sides)
    if found is None or sides.port.ndim < 2:
        return
    layers = context.layers_of(finding)
    weights = weights_of(layers, context, finding.step)
    eps = next(
        (
            float(v)
            for n in _EPS_NAMES
            if layers[0] is not None
            and isinstance(v := layers[0].attribute(n), (int, float))
            and not isinstance(v, bool)
        ),
        1e-5,
    )
    mine = _name(
        sides.reference, found.given.reference, found.x.reference, weights[0], eps, found.gap
    )
    yours = _name(sides.port, found.given.port, found.x.port, weights[1], eps, found.gap)
    if mine is None or yours is None or mine[0] == yours[0]:
        return
    left = max(mine[1], yours[1])
    port_cut = "constant" in yours[0]
    yield Cause(
        "stop-gradient-extra" if port_cut else "stop-gradient-missing",
        f"the reference's backward is {mine[0]}, the port's {yours[0]}: "
        + (
            "stop_gradient (or detach) lies around the statistics"
            if port_cut
            else "the reference detaches its statistics"
        ),
        f"recomputed from the layer's input and the gradient that arrives ({percent(left)} of the "
        "difference left)",
        round(0.96 - 0.5 * left, 3),
    )


def _name(
    wanted: Floats, given: Floats, x: Floats, weights: Weights, eps: float, gap: float
) -> tuple[str, float] | None:
    """The backward that leads from the gradient that arrives to the one that goes on."""
    best: tuple[str, float] | None = None
    for words, axes, function in _backwards(x):
        weight = _weight(weights, x, axes)
        if weight is None:
            continue
        value = function(given * weight, x, np.array(axes), eps)
        left = float(np.linalg.norm(value - wanted)) / gap
        if left <= LEFT and (best is None or left < 0.8 * best[1]):
            best = words, left
    return best


def _backwards(x: Floats) -> Iterable[tuple[str, tuple[int, ...], Backward]]:
    last = (x.ndim - 1,)
    yield "RMSNorm's", last, _rms
    yield "RMSNorm's with the root mean square taken as constant", last, _rms_fixed
    yield "LayerNorm's", last, _centred
    yield "LayerNorm's with mean and variance taken as constant", last, _fixed
    yield "LayerNorm's with the variance taken as constant", last, _mean_only
    batch = (0, *range(2, x.ndim))
    yield "BatchNorm's", batch, _centred
    yield "BatchNorm's with mean and variance taken as constant", batch, _fixed


def _weight(weights: Weights, x: Floats, axes: tuple[int, ...]) -> Floats | None:
    weight = weights.get("weight")
    if weight is None:
        return np.ones(())
    if axes == (x.ndim - 1,):
        return weight if weight.shape == x.shape[-1:] else None
    if weight.shape != (x.shape[1],):
        return None
    return weight.reshape(1, -1, *(1,) * (x.ndim - 2))


def _mean(values: Floats, axes: Floats) -> Floats:
    return np.asarray(values.mean(axis=tuple(int(a) for a in axes), keepdims=True))


def _rms(g: Floats, x: Floats, axes: Floats, eps: float) -> Floats:
    r = 1 / np.sqrt(_mean(x * x, axes) + eps)
    return np.asarray(g * r - x * r**3 * _mean(g * x, axes))


def _rms_fixed(g: Floats, x: Floats, axes: Floats, eps: float) -> Floats:
    return np.asarray(g / np.sqrt(_mean(x * x, axes) + eps))


def _scaled(x: Floats, axes: Floats, eps: float) -> tuple[Floats, Floats]:
    centred = x - _mean(x, axes)
    r = 1 / np.sqrt(_mean(centred * centred, axes) + eps)
    return centred * r, r


def _centred(g: Floats, x: Floats, axes: Floats, eps: float) -> Floats:
    y, r = _scaled(x, axes, eps)
    return np.asarray(r * (g - _mean(g, axes) - y * _mean(g * y, axes)))


def _fixed(g: Floats, x: Floats, axes: Floats, eps: float) -> Floats:
    return np.asarray(g * _scaled(x, axes, eps)[1])


def _mean_only(g: Floats, x: Floats, axes: Floats, eps: float) -> Floats:
    return np.asarray((g - _mean(g, axes)) * _scaled(x, axes, eps)[1])
