"""Causes in linear layers and convolutions: bias, transposed weight, the far edge of a transposed one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paritydbg.explain.causes.forms import Form, Weights, percent, recognise
from paritydbg.explain.causes.site import Site
from paritydbg.explain.causes.weights_of import weights_of
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding
from paritydbg.model.record import LayerRecord


def linear_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """Bias and weight of a layer, as its values show them."""
    layers = context.layers_of(finding)
    weights = weights_of(layers, context, finding.step)
    found = [*_transposed(site, weights), *_bias(layers[0], site, weights)]
    yield from found
    if not found:
        yield from _edge(layers, site)


def _transposed(site: Site, weights: tuple[Weights, Weights]) -> Iterable[Cause]:
    for found in recognise(site, (_LINEAR, _TRANSPOSED, _NO_BIAS), weights):
        without = _NO_BIAS in (found.reference, found.port)
        yield Cause(
            "bias-missing" if without else "weight-transposed-square",
            f"the reference computes {found.reference.words}, the port {found.port.words}",
            found.evidence,
            found.confidence,
        )
        return


def _bias(
    reference: LayerRecord | None, site: Site, weights: tuple[Weights, Weights]
) -> Iterable[Cause]:
    """The difference is the reference's bias, at every position."""
    bias = weights[0].get("bias")
    if bias is None or bias.ndim != 1:
        return
    kind = reference.type if reference is not None else ""
    axis = 1 if "Conv" in kind else site.port.ndim - 1
    if site.port.ndim <= axis or site.port.shape[axis] != bias.size:
        return
    shape = [1] * site.port.ndim
    shape[axis] = -1
    left = site.left_of_port(site.reference - bias.reshape(shape))
    if left <= site.limit:
        yield Cause(
            "conv-bias-missing" if "Conv" in kind else "bias-missing",
            "the port's output is the reference's without the bias",
            f"the reference's {site.words} less its bias gives the port's "
            f"({percent(left)} of the difference left)",
            round(0.96 - 0.5 * left, 3),
        )


def _edge(layers: tuple[LayerRecord | None, LayerRecord | None], site: Site) -> Iterable[Cause]:
    """A transposed convolution that differs in its last rows and columns alone."""
    kinds = [layer.type for layer in layers if layer is not None]
    if not any("Transpose" in kind for kind in kinds) or site.port.ndim < 3:
        return
    wrong = np.abs(site.port - site.reference)
    near = (slice(None), slice(None), *(slice(0, -1) for _ in site.port.shape[2:]))
    inner = wrong[near]
    rest = float(np.linalg.norm(inner)) / site.gap
    if rest <= site.limit:
        yield Cause(
            "conv-transpose-output-padding-kernel",
            "the port's kernel leaves out what output_padding adds at the far edge; "
            "cut less there instead: padding=(p, p-op, p, p-op) without output_padding",
            f"all but {percent(rest)} of the difference lies in the last row and column",
            round(0.94 - 0.5 * rest, 3),
        )


def _product(x: Floats, weight: Floats | None, bias: Floats | None) -> Floats | None:
    if weight is None or weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1]:
        return None
    product = np.asarray(x @ weight.T)
    return product if bias is None or bias.shape != product.shape[-1:] else product + bias


def _linear(x: Floats, weights: Weights) -> Floats | None:
    return _product(x, weights.get("weight"), weights.get("bias"))


def _turned(x: Floats, weights: Weights) -> Floats | None:
    weight = weights.get("weight")
    if weight is None or weight.ndim != 2 or weight.shape[0] != weight.shape[1]:
        return None
    return _product(x, weight.T, weights.get("bias"))


def _bare(x: Floats, weights: Weights) -> Floats | None:
    return _product(x, weights.get("weight"), None)


_LINEAR = Form("x·Wᵀ + b", "linear", _linear)
_TRANSPOSED = Form("x·W + b (its weight the other way round)", "linear", _turned)
_NO_BIAS = Form("x·Wᵀ without the bias", "linear", _bare)
