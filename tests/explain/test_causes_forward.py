"""Causes of forward findings, told by values alone: each side's calculation is recognised."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paritydbg.explain.explain import explain
from paritydbg.model.event import Role
from paritydbg.model.finding import Finding, Stage
from tests.explain.memory_run import MemoryRun, context_of, finding_of

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((4, 6, 8))
IMAGE = RANDOM.standard_normal((2, 4, 6, 6))
Calculation = Callable[[Any], Any]


def explained(
    x: Any,
    reference: Calculation,
    port: Calculation,
    api: str = "torch.nn.Module",
    weights: dict[str, Any] | None = None,
    **attributes: Any,
) -> Finding:
    """The explained finding of one layer that calculates two things from one input."""
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, calculation in zip(runs, (reference, port), strict=True):
        for name, value in (weights or {}).items():
            run.parameter(f"layer.{name}", value, buffer=name.startswith("running"))
        run.layer("layer", api, **attributes)
        run.add(Role.INPUT, "layer", x, slot="0")
        run.add(Role.OUTPUT, "layer", calculation(x))
    context = context_of(*runs)
    return explain(finding_of(context, Stage.FORWARD, "layer", Role.OUTPUT), context)


def glued(sources: dict[str, Any], reference: Any, port: Any, **attributes: Any) -> Finding:
    """The explained finding of code between layers: what it had at hand and what it made."""
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, made in zip(runs, (reference, port), strict=True):
        run.layer("block", "mine.Block", **attributes)
        for name, value in sources.items():
            run.layer(name, "mine.Layer")
            run.add(Role.OUTPUT, name, value)
        run.layer("block.next", "mine.Layer")
        run.add(Role.INPUT, "block.next", made, slot="0")
    context = context_of(*runs)
    place = "before block.next"
    finding = finding_of(context, Stage.FORWARD, place, Role.INPUT, name="block.next")
    return explain(finding, context)


def erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


def softmax(x: Any, axis: int = -1) -> Any:
    grown = np.exp(x - x.max(axis=axis, keepdims=True))
    return grown / grown.sum(axis=axis, keepdims=True)


def layer_norm(x: Any, eps: float) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + eps)


def group_norm(x: Any, groups: int) -> Any:
    rows = x.reshape(x.shape[0], groups, -1)
    done = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    return done.reshape(x.shape)


def rms(x: Any, inside: float, outside: float) -> Any:
    return x / (np.sqrt(np.mean(x * x, -1, keepdims=True) + inside) + outside)


def batch_norm(x: Any, mean: Any, variance: Any) -> Any:
    shape = (1, -1, 1, 1)
    return (x - np.reshape(mean, shape)) / np.sqrt(np.reshape(variance, shape) + 1e-5)


ACTIVATIONS: dict[str, tuple[Calculation, Calculation]] = {
    "gelu-approximate-default": (
        lambda x: 0.5 * x * (1 + erf(x / 2**0.5)),
        lambda x: 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    ),
    "quickgelu": (
        lambda x: 0.5 * x * (1 + erf(x / 2**0.5)),
        lambda x: x / (1 + np.exp(-1.702 * x)),
    ),
    "leakyrelu-slope-default": (
        lambda x: np.where(x > 0, x, 0.01 * x),
        lambda x: np.where(x > 0, x, 0.2 * x),
    ),
    "silu-vs-gelu": (
        lambda x: x / (1 + np.exp(-x)),
        lambda x: 0.5 * x * (1 + erf(x / 2**0.5)),
    ),
    "elu-alpha": (
        lambda x: np.where(x > 0, x, np.expm1(x)),
        lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)),
    ),
    "softmax-axis": (lambda x: softmax(x, -1), lambda x: softmax(x, 1)),
    "double-softmax": (lambda x: x, softmax),
    "layernorm-eps-default": (lambda x: layer_norm(x, 1e-2), lambda x: layer_norm(x, 1e-5)),
    "rmsnorm-eps-outside-sqrt": (lambda x: rms(x, 1e-3, 0.0), lambda x: rms(x, 0.0, 1e-3)),
    "rmsnorm-eps-missing": (lambda x: rms(x, 1e-3, 0.0), lambda x: rms(x, 0.0, 0.0)),
    "values-scaled": (lambda x: x**3, lambda x: 0.125 * x**3),
}


@pytest.mark.parametrize("slug", ACTIVATIONS)
def test_the_calculation_of_each_side_is_recognised_from_the_input(slug: str) -> None:
    reference, port = ACTIVATIONS[slug]
    x = X.copy() * (0.05 if "norm" in slug else 1.0)
    found = explained(x, reference, port, eps=1e-2 if slug.startswith("layernorm") else 1e-3)
    assert found.causes[0].slug == slug
    assert "difference left" in found.causes[0].evidence


def test_a_difference_that_nothing_explains_gets_no_cause() -> None:
    found = explained(X, np.sin, lambda x: np.sin(x) + 0.3 * np.cos(5 * x) * np.roll(x, 1))
    assert found.causes == ()


def test_stage_verdict_and_place_stay_as_they_were() -> None:
    reference, port = ACTIVATIONS["quickgelu"]
    found = explained(X, reference, port)
    assert (found.stage, found.place, found.evidence is not None) == (Stage.FORWARD, "layer", True)


def test_other_groups_of_a_group_norm_are_told_from_another_epsilon() -> None:
    found = explained(IMAGE, lambda x: group_norm(x, 2), lambda x: group_norm(x, 4))
    assert found.causes[0].slug == "groupnorm-num-groups"


def test_stored_statistics_in_place_of_those_of_the_batch_mean_the_wrong_mode() -> None:
    mean, variance = RANDOM.standard_normal(4), RANDOM.uniform(0.5, 2, 4)
    found = explained(
        IMAGE,
        lambda x: batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3))),
        lambda x: batch_norm(x, mean, variance),
        weights={"running_mean": mean, "running_var": variance},
    )
    assert found.causes[0].slug == "train-mode-not-set"
    back = explained(
        IMAGE,
        lambda x: batch_norm(x, mean, variance),
        lambda x: batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3))),
        weights={"running_mean": mean, "running_var": variance},
    )
    assert back.causes[0].slug == "eval-mode-not-set"


def test_a_bias_that_is_left_out_is_found_in_the_difference() -> None:
    weight, bias = RANDOM.standard_normal((8, 8)), RANDOM.standard_normal(8)
    given = {"weight": weight, "bias": bias}
    found = explained(X, lambda x: x @ weight.T + bias, lambda x: x @ weight.T, weights=given)
    assert found.causes[0].slug == "bias-missing"
    turned = explained(X, lambda x: x @ weight.T + bias, lambda x: x @ weight + bias, weights=given)
    assert turned.causes[0].slug == "weight-transposed-square"


def test_padding_that_an_average_pool_counts_is_told_from_padding_that_it_does_not() -> None:
    def pooled(x: Any, divisor: Any) -> Any:
        padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
        windows = [padded[:, :, i : i + 5 : 2, j : j + 5 : 2] for i in range(3) for j in range(3)]
        return sum(windows) / divisor

    counts = pooled(np.ones((1, 1, 6, 6)), 1.0)
    found = explained(
        IMAGE,
        lambda x: pooled(x, 9.0),
        lambda x: pooled(x, counts),
        kernel_size=3,
        stride=2,
        padding=1,
    )
    assert found.causes[0].slug == "avgpool-count-include-pad"


def test_aligned_corners_are_told_from_half_pixel_centres() -> None:
    def resized(x: Any, at: Any) -> Any:
        at = np.clip(at, 0, x.shape[-1] - 1)
        low = np.minimum(np.floor(at).astype(int), x.shape[-1] - 2)
        part = at - low
        x = x[..., low] * (1 - part) + x[..., low + 1] * part
        x = x.swapaxes(-1, -2)
        return (x[..., low] * (1 - part) + x[..., low + 1] * part).swapaxes(-1, -2)

    found = explained(
        IMAGE,
        lambda x: resized(x, np.arange(12) * 5 / 11),
        lambda x: resized(x, (np.arange(12) + 0.5) / 2 - 0.5),
    )
    assert found.causes[0].slug == "resize-align-corners"


def test_a_transposed_convolution_that_differs_at_the_far_edge_alone_lacks_output_padding() -> None:
    def cut(x: Any) -> Any:
        x = x.copy()
        x[..., -1] = 0
        x[..., -1, :] = 0
        return x

    found = explained(IMAGE, np.sin, lambda x: cut(np.sin(x)), api="torch.nn.ConvTranspose2d")
    assert found.causes[0].slug == "conv-transpose-output-padding-kernel"


def test_a_residual_that_is_left_out_is_named_with_its_source() -> None:
    a, b = RANDOM.standard_normal((2, 4, 8))
    found = glued({"first": a, "second": b}, a + b, a)
    assert found.causes[0].slug in ("residual-missing", "activation-differs")
    assert any(c.slug == "residual-missing" and "second" in c.summary for c in found.causes)


def test_the_order_of_flattening_is_read_from_the_source() -> None:
    flat = IMAGE.reshape(2, -1)
    other = IMAGE.transpose(0, 2, 3, 1).reshape(2, -1)
    found = glued({"pool": IMAGE}, flat, other)
    assert found.causes[0].slug == "flatten-order"


def test_halves_that_changed_places_are_a_concatenation_in_another_order() -> None:
    a, b = RANDOM.standard_normal((2, 2, 3, 5, 5))
    found = glued({}, np.concatenate([a, b], 1), np.concatenate([b, a], 1))
    assert found.causes[0].slug == "concat-order"


def test_a_gate_that_goes_through_another_activation_is_found_in_the_product() -> None:
    gate, up = RANDOM.standard_normal((2, 4, 16))
    silu, gelu = ACTIVATIONS["silu-vs-gelu"]
    found = glued({"gate": gate, "up": up}, silu(gate) * up, gelu(gate) * up)
    assert found.causes[0].slug == "silu-vs-gelu"


def dropped(rate: float, seed: int = 0) -> Calculation:
    return lambda x: x * (np.random.default_rng(seed).uniform(size=x.shape) > rate) / (1 - rate)


def test_another_share_that_is_kept_is_told_from_another_mask_of_one_rate() -> None:
    found = explained(X, dropped(0.1), dropped(0.9))
    assert found.causes[0].slug == "dropout-keep-prob"
    assert "p=0.1" in found.causes[0].summary
    assert explained(X, dropped(0.4), dropped(0.4, 1)).causes[0].slug == "seed-differs"


def test_dropout_on_one_side_alone_means_the_wrong_mode() -> None:
    assert explained(X, dropped(0.4), lambda x: x).causes[0].slug == "train-mode-not-set"
    assert explained(X, lambda x: x, dropped(0.4)).causes[0].slug == "dropout-active-in-eval"
