"""Causes in activations: which function each side really applied, told by its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from paritydbg.explain.causes.forms import Form, Weights, recognise
from paritydbg.explain.causes.sampling import Reach
from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding

Function = Callable[[Floats], Floats]
_SLOPES = (0.01, 0.2, 0.1, 0.25, 0.3, 0.05)
_ALPHAS = (1.0, 0.5, 1.5, 2.0, 0.1)
_GELUS = ("gelu", "gelu-tanh", "quickgelu")


def activation_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """Another activation, another form of it, or another slope."""
    for found in recognise(site, POINTWISE + _axis_forms(site.port.ndim)):
        slug = activation_slug(found.reference, found.port)
        yield Cause(
            slug,
            f"the reference applies {found.reference.words}, the port {found.port.words}",
            found.evidence,
            found.confidence,
        )
        return


def activation_slug(reference: Form, port: Form) -> str:
    """The cause that two forms of activation stand for."""
    kinds = {reference.kind, port.kind}
    if kinds <= {"softmax", "log-softmax"} and len(kinds) == 1:
        return "softmax-axis"
    for wanted, slug in (
        ({"gelu", "gelu-tanh"}, "gelu-approximate-default"),
        ({"leaky-relu"}, "leakyrelu-slope-default"),
        ({"elu"}, "elu-alpha"),
        ({"softplus"}, "softplus-threshold"),
        ({"hard-sigmoid"}, "hardsigmoid-variant"),
        ({"softmax", "identity"}, "double-softmax"),
        ({"softmax", "double-softmax"}, "double-softmax"),
        ({"log-softmax", "identity"}, "logits-vs-probabilities"),
        ({"sigmoid", "identity"}, "logits-vs-probabilities"),
        ({"softmax", "log-softmax"}, "logits-vs-probabilities"),
    ):
        if kinds == wanted:
            return slug
    if "quickgelu" in kinds and kinds & {"gelu", "gelu-tanh"}:
        return "quickgelu"
    if "silu" in kinds and kinds & set(_GELUS):
        return "silu-vs-gelu"
    return "activation-differs"


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x) without overflow."""
    grown = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + grown), grown / (1 + grown))


def erf(x: Floats) -> Floats:
    """The error function, by the standard library element by element."""
    flat = np.fromiter((math.erf(v) for v in x.ravel()), np.float64, x.size)
    return flat.reshape(x.shape)


def gelu(x: Floats) -> Floats:
    """GELU by the error function."""
    return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))))


def gelu_tanh(x: Floats) -> Floats:
    """GELU by the hyperbolic tangent."""
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def softmax(x: Floats, axis: int) -> Floats:
    """Softmax over an axis."""
    grown = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(grown / grown.sum(axis=axis, keepdims=True))


def _log_softmax(x: Floats, axis: int) -> Floats:
    shifted = x - x.max(axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)))


def _over(axis: int, function: Callable[[Floats, int], Floats]) -> Function:
    return lambda x: function(x, axis)


def _relu6(x: Floats) -> Floats:
    return np.asarray(np.minimum(np.maximum(x, 0.0), 6.0), np.float64)


def _squashed(x: Floats) -> Floats:
    return np.minimum(np.maximum(0.2 * x + 0.5, 0.0), 1.0)


def _squared_relu(x: Floats) -> Floats:
    return np.asarray(np.maximum(x, 0.0) ** 2, np.float64)


def _softplus(x: Floats, beta: float, threshold: float) -> Floats:
    grown = np.logaddexp(0.0, beta * x) / beta
    return np.where(beta * x > threshold, x, grown)


def _form(words: str, kind: str, function: Function, reach: Reach = "element") -> Form:
    def value(x: Floats, _weights: Weights) -> Floats:
        with np.errstate(all="ignore"):
            return function(x)

    return Form(words, kind, value, reach=reach)


def _leaky(slope: float) -> Form:
    return _form(
        f"LeakyReLU of slope {slope:g}", "leaky-relu", lambda x: np.where(x >= 0, x, slope * x)
    )


def _elu(alpha: float) -> Form:
    return _form(
        f"ELU of alpha {alpha:g}",
        "elu",
        lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    )


POINTWISE: tuple[Form, ...] = (
    _form("nothing", "identity", lambda x: x),
    _form("ReLU", "relu", lambda x: np.maximum(x, 0)),
    _form("GELU (erf form)", "gelu", gelu),
    _form("GELU (tanh form)", "gelu-tanh", gelu_tanh),
    _form("quick GELU, x·sigmoid(1.702 x)", "quickgelu", lambda x: x * sigmoid(1.702 * x)),
    _form("SiLU", "silu", lambda x: x * sigmoid(x)),
    *(_leaky(slope) for slope in _SLOPES),
    *(_elu(alpha) for alpha in _ALPHAS),
    _form("tanh", "tanh", np.tanh),
    _form("sigmoid", "sigmoid", sigmoid),
    _form("ReLU6", "relu6", _relu6),
    _form("hard swish", "hard-swish", lambda x: x * _relu6(x + 3) / 6),
    _form("hard sigmoid, (x+3)/6 clipped", "hard-sigmoid", lambda x: _relu6(x + 3) / 6),
    _form(
        "hard sigmoid, 0.2 x + 0.5 clipped", "hard-sigmoid", _squashed
    ),
    _form("Mish", "mish", lambda x: x * np.tanh(np.logaddexp(0.0, x))),
    _form("softplus", "softplus", lambda x: _softplus(x, 1, 20)),
    _form("softplus of beta 2", "softplus", lambda x: _softplus(x, 2, 20)),
    _form("SELU", "selu", lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))),
    _form("squared ReLU", "relu-squared", _squared_relu),
)  # fmt: skip


def _axis_forms(dimensions: int) -> tuple[Form, ...]:
    """Softmax and its logarithm over each axis, and softmax of softmax over the last."""
    forms = []
    for axis in reversed(range(dimensions)):
        reach: Reach = "sample" if axis else "all"
        for words, function in (("softmax", softmax), ("log-softmax", _log_softmax)):
            forms.append(_form(f"{words} over axis {axis}", words, _over(axis, function), reach))
    if dimensions:
        twice = _form(
            "softmax of softmax",
            "double-softmax",
            lambda x: softmax(softmax(x, -1), -1),
            "sample" if dimensions > 1 else "all",
        )
        forms.append(twice)
    return tuple(forms)
