"""Causes in normalisation: epsilon and its place, statistics, groups, axes, told by the values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from paritydbg.explain.causes.forms import Form, Recognised, Weights, recognise
from paritydbg.explain.causes.site import Site
from paritydbg.explain.causes.weights_of import weights_of
from paritydbg.explain.context import Context, Floats
from paritydbg.model.finding import Cause, Finding
from paritydbg.model.record import LayerRecord

_EPSILONS = (1e-5, 1e-6, 1e-7, 0.0, 1e-12, 1e-3, 1e-8, 1.1920928955078125e-07)
_GROUPS = (32, 16, 8, 4, 2, 1)
_EPS_NAMES = ("eps", "epsilon", "variance_epsilon", "layer_norm_eps", "norm_eps")
_EPS_SLUGS = {
    "layer-norm": "layernorm-eps-default",
    "rms-norm": "rmsnorm-eps",
    "group-norm": "groupnorm-eps-site",
    "batch-norm": "batchnorm-eps",
}


def norm_causes(finding: Finding, context: Context, site: Site) -> Iterable[Cause]:
    """What differs between the two normalisations, where both sides turn out to be one."""
    layers = context.layers_of(finding)
    weights = weights_of(layers, context, finding.step)
    forms = tuple(_forms(site, layers))
    for found in recognise(site, forms, weights):
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
        return "norm-kind-differs"
    changed = {name for name in mine.settings if mine.settings[name] != yours.settings.get(name)}
    if "statistics" in changed:
        wanted = mine.settings["statistics"]
        return "train-mode-not-set" if wanted == "batch" else "eval-mode-not-set"
    if "place" in changed and "outside" in (mine.settings["place"], yours.settings["place"]):
        return "rmsnorm-eps-outside-sqrt" if mine.kind == "rms-norm" else "norm-eps-place"
    for name, slug in (
        ("ddof", "std-ddof-default"),
        ("groups", "groupnorm-num-groups"),
        ("axes", "norm-axis"),
        ("affine", "norm-affine-missing"),
    ):
        if name in changed:
            return slug
    if mine.kind == "rms-norm" and yours.settings["eps"] == 0:
        return "rmsnorm-eps-missing"
    return _EPS_SLUGS[mine.kind]


def _forms(site: Site, layers: tuple[LayerRecord | None, LayerRecord | None]) -> Iterator[Form]:
    epsilons = _known_epsilons(layers) + _EPSILONS
    epsilons = tuple(dict.fromkeys(epsilons))
    dimensions = site.port.ndim
    if dimensions < 2:
        return
    for eps in epsilons:
        for last in range(1, min(dimensions, 4)):
            yield _layer_norm(eps, last, ddof=0, place="inside")
        yield _rms_norm(eps, "inside")
        yield _layer_norm(eps, 1, ddof=1, place="outside")
        yield _layer_norm(eps, 1, ddof=0, place="outside")
        yield _layer_norm(eps, 1, ddof=1, place="inside")
        if eps:
            yield _rms_norm(eps, "outside")
        for statistics in ("batch", "stored"):
            yield _batch_norm(eps, statistics)
        channels = site.port.shape[1]
        for groups in _known_groups(layers, channels):
            yield _group_norm(eps, groups)


def _known_epsilons(
    layers: Sequence[LayerRecord | None],
) -> tuple[float, ...]:
    """The epsilons that the layers' records hold, the likeliest of all."""
    found = []
    for layer in layers:
        for name in _EPS_NAMES if layer is not None else ():
            value = layer.attribute(name) if layer is not None else None
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.append(float(value))
    return tuple(found)


def _known_groups(layers: Sequence[LayerRecord | None], channels: int) -> tuple[int, ...]:
    told = [layer.attribute("num_groups") for layer in layers if layer is not None]
    numbers = [n for n in told if isinstance(n, int) and n > 0]
    candidates = dict.fromkeys((*numbers, *_GROUPS, channels))
    return tuple(n for n in candidates if channels % n == 0)


def _layer_norm(eps: float, last: int, ddof: int, place: str) -> Form:
    def value(x: Floats, weights: Weights) -> Floats | None:
        if x.ndim <= last:
            return None
        axes = tuple(range(x.ndim - last, x.ndim))
        centred = x - x.mean(axis=axes, keepdims=True)
        variance = x.var(axis=axes, ddof=ddof, keepdims=True)
        below = np.sqrt(variance + eps) if place == "inside" else np.sqrt(variance) + eps
        return _affine(_divided(centred, below), weights, shape=x.shape[x.ndim - last :])

    over = f" over the last {last} axes" if last > 1 else ""
    extra = ", variance of n-1" if ddof else ""
    extra += ", eps added to the root" if place == "outside" else ""
    settings: dict[str, float | int | str] = {
        "eps": eps,
        "axes": last,
        "ddof": ddof,
        "place": place,
    }
    return Form(
        f"LayerNorm{over} with eps {eps:.3g}{extra}", "layer-norm", value, settings, "sample"
    )


def _rms_norm(eps: float, place: str) -> Form:
    def value(x: Floats, weights: Weights) -> Floats | None:
        square = np.mean(x * x, axis=-1, keepdims=True)
        below = np.sqrt(square + eps) if place == "inside" else np.sqrt(square) + eps
        return _affine(_divided(x, below), weights, shape=x.shape[-1:])

    words = f"RMSNorm with eps {eps:.3g}" if eps else "RMSNorm without eps"
    if place == "outside":
        words += " added to the root"
    return Form(words, "rms-norm", value, {"eps": eps, "place": place}, "sample")


def _group_norm(eps: float, groups: int) -> Form:
    def value(x: Floats, weights: Weights) -> Floats | None:
        if x.ndim < 3 or x.shape[1] % groups:
            return None
        rows = x.reshape(x.shape[0], groups, -1)
        centred = rows - rows.mean(axis=-1, keepdims=True)
        below = np.sqrt(rows.var(axis=-1, keepdims=True) + eps)
        return _by_channel(_divided(centred, below).reshape(x.shape), weights)

    words = f"GroupNorm of {groups} groups with eps {eps:.3g}"
    return Form(words, "group-norm", value, {"groups": groups, "eps": eps}, "sample")


def _batch_norm(eps: float, statistics: str) -> Form:
    def value(x: Floats, weights: Weights) -> Floats | None:
        axes = (0, *range(2, x.ndim))
        if statistics == "batch":
            mean, variance = x.mean(axis=axes), x.var(axis=axes)
        elif "running_mean" in weights and "running_var" in weights:
            mean, variance = weights["running_mean"], weights["running_var"]
        else:
            return None
        if mean.shape != (x.shape[1],):
            return None
        shape = (1, -1, *(1,) * (x.ndim - 2))
        below = np.sqrt(variance.reshape(shape) + eps)
        return _by_channel(_divided(x - mean.reshape(shape), below), weights)

    words = f"BatchNorm by the {statistics} statistics with eps {eps:.3g}"
    return Form(words, "batch-norm", value, {"statistics": statistics, "eps": eps}, "channel")


def _divided(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return above / below


def _affine(x: Floats, weights: Weights, shape: tuple[int, ...]) -> Floats | None:
    for name in ("weight", "bias"):
        if name in weights:
            if weights[name].shape != shape:
                return None
            x = x * weights[name] if name == "weight" else x + weights[name]
    return x


def _by_channel(x: Floats, weights: Weights) -> Floats | None:
    shape = (1, -1, *(1,) * (x.ndim - 2))
    for name in ("weight", "bias"):
        if name in weights:
            if weights[name].shape != (x.shape[1],):
                return None
            shaped = weights[name].reshape(shape)
            x = x * shaped if name == "weight" else x + shaped
    return x
