"""Causes in batches, weights, losses, statistics and structure, told by values alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paritydbg.explain.explain import explain
from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Role
from paritydbg.model.finding import Cause, Finding, Stage
from tests.explain.memory_run import MemoryRun, context_of, finding_of

RANDOM = np.random.default_rng(3)
IMAGE = RANDOM.uniform(0, 1, (4, 3, 5, 5))
LOGITS, LABELS = RANDOM.standard_normal((6, 5)), np.array([0, 3, 1, 4, 2, 2])
MEAN = np.array([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
STD = np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)


def batch(reference: Any, port: Any) -> Cause:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, values in zip(runs, (reference, port), strict=True):
        run.add(Role.BATCH, "x", values)
    context = context_of(*runs)
    finding = finding_of(context, Stage.INPUT_DATA, "inputs:x", Role.BATCH, name="x")
    return explain(finding, context).causes[0]


BATCHES: dict[str, tuple[Any, Any]] = {
    "normalise-scale": (IMAGE, 255 * IMAGE),
    "normalise-mean": (IMAGE, (IMAGE - MEAN) / STD),
    "channel-order": (IMAGE, IMAGE[:, ::-1]),
    "sample-order": (IMAGE, IMAGE[[2, 0, 3, 1]]),
    "label-flip-axes": (IMAGE, IMAGE[..., ::-1]),
    "layout-nhwc-nchw": (IMAGE, IMAGE.transpose(0, 2, 3, 1)),
    "label-offset": (LABELS, LABELS + 1),
    "tokenizer-padding-side": (
        np.array([[5, 6, 7, 0], [8, 9, 0, 0]]),
        np.array([[0, 5, 6, 7], [0, 0, 8, 9]]),
    ),
}


@pytest.mark.parametrize("slug", BATCHES)
def test_how_one_batch_came_from_the_other_is_recognised(slug: str) -> None:
    assert batch(*BATCHES[slug]).slug == slug


def test_bytes_divided_twice_before_normalising_are_a_scale_though_there_is_an_offset() -> None:
    assert batch((IMAGE - MEAN) / STD, (IMAGE / 255 - MEAN) / STD).slug == "normalise-scale"


def weight(reference: Any, port: Any, kind: str = "Linear", name: str = "weight") -> Cause:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, values in zip(runs, (reference, port), strict=True):
        run.parameter(f"fc.{name}", values, buffer=name.startswith("running"))
        run.layer("fc", f"torch.nn.{kind}")
    context = context_of(*runs)
    role = Role.BUFFER if name.startswith("running") else Role.PARAMETER
    finding = finding_of(context, Stage.WEIGHTS, f"fc.{name}", role, static=True)
    return explain(finding, context).causes[0]


W = RANDOM.standard_normal((12, 12))
WEIGHTS: dict[str, Any] = {
    "weight-transposed-square": W.T,
    "weight-not-transplanted": RANDOM.standard_normal((12, 12)),
    "fused-qkv-layout": W.reshape(3, 4, 12)[[1, 0, 2]].reshape(12, 12),
    "weight-scaled": 0.5 * W,
}


@pytest.mark.parametrize("slug", WEIGHTS)
def test_how_one_weight_came_from_the_other_is_recognised(slug: str) -> None:
    assert weight(W, WEIGHTS[slug]).slug == slug


def test_blocks_of_an_lstm_in_another_order_are_gates() -> None:
    moved = W.reshape(4, 3, 12)[[0, 2, 1, 3]].reshape(12, 12)
    assert weight(W, moved, kind="LSTM").slug == "lstm-gate-order"


def test_running_statistics_that_are_still_zero_were_not_copied() -> None:
    found = weight(RANDOM.standard_normal(4), np.zeros(4), "BatchNorm2d", "running_mean")
    assert found.slug == "running-stats-not-transplanted"


def loss(reference: float, port: float, output: Any = LOGITS, target: Any = LABELS) -> list[Cause]:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, value in zip(runs, (reference, port), strict=True):
        run.add(Role.BATCH, "y", target)
        run.add(Role.OUTPUT, "", output)
        run.add(Role.LOSS, "loss", np.float32(value))
    context = context_of(*runs)
    finding = finding_of(context, Stage.LOSS, "loss", Role.LOSS)
    return list(explain(finding, context).causes)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def entropies(labels: Any = LABELS) -> Any:
    return -log_softmax(LOGITS)[np.arange(6), np.maximum(labels, 0)]


def test_a_sum_is_told_from_a_mean() -> None:
    each = entropies()
    assert loss(each.mean(), each.sum())[0].slug == "loss-reduction"


def test_a_mean_that_counts_ignored_labels_divides_by_too_many() -> None:
    labels = np.where(np.arange(6) < 2, -100, LABELS)
    each = entropies(labels)[2:]
    found = loss(each.mean(), each.sum() / 6, target=labels)
    assert found[0].slug == "loss-denominator-ignore-index"


def test_label_smoothing_and_softmax_before_the_loss_are_recognised() -> None:
    each = entropies()
    smooth = 0.9 * each.mean() - 0.1 * log_softmax(LOGITS).mean()
    assert loss(each.mean(), smooth)[0].slug == "label-smoothing"
    twice = -log_softmax(np.exp(log_softmax(LOGITS)))[np.arange(6), LABELS].mean()
    assert loss(each.mean(), twice)[0].slug == "double-softmax"


def test_a_divergence_averaged_over_elements_is_no_batch_mean() -> None:
    target = np.exp(log_softmax(RANDOM.standard_normal((6, 5))))
    log = log_softmax(LOGITS)
    every = target * (np.log(target) - log)
    found = loss(every.sum() / 6, every.mean(), log, target)
    assert found[0].slug == "kldiv-reduction"


def test_a_loss_that_cannot_be_recomputed_is_still_held_against_the_sizes_of_the_batch() -> None:
    found = loss(1.2345, 6 * 1.2345)
    assert found[0].slug == "loss-reduction"
    assert loss(1.2345, 1.9)[:1] == []


def statistics(used: float, biased: bool = False) -> Cause:
    x = RANDOM.standard_normal((4, 3, 5, 5))
    old, batch_variance = np.ones(3), x.var((0, 2, 3), ddof=1)
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run in runs:
        run.parameter("bn.running_var", old, buffer=True)
        run.layer("bn", "torch.nn.BatchNorm2d", momentum=0.1)
        run.add(Role.INPUT, "bn", x, slot="0")
        mine = run is runs[0]
        variance = batch_variance if mine or not biased else x.var((0, 2, 3))
        m = 0.1 if mine else used
        run.add(Role.BUFFER, "bn.running_var", (1 - m) * old + m * variance, after=True)
    context = context_of(*runs)
    update = [c for c in context.comparisons if c.verdict is not Verdict.MATCH]
    finding = Finding(
        Stage.RUNNING_STATS,
        Verdict.DIVERGED,
        "bn.running_var",
        "",
        "bn.running_var",
        evidence=update[0],
    )
    return explain(finding, context).causes[0]


def test_statistics_that_move_by_one_minus_the_momentum_follow_the_other_convention() -> None:
    assert statistics(0.9).slug == "bn-momentum-convention"


def test_statistics_that_do_not_move_belong_to_a_layer_in_eval_mode() -> None:
    assert statistics(0.0).slug == "train-mode-not-set"


def test_a_variance_divided_by_n_is_recognised_by_its_size() -> None:
    assert statistics(0.1, biased=True).slug == "bn-running-var-biased"


def lone(name: str, layer: str, **attributes: Any) -> Cause:
    reference, port = MemoryRun("torch"), MemoryRun("mindspore")
    reference.parameter(name, np.ones(3))
    reference.layer(layer, "torch.nn.Conv2d")
    port.layer(layer, "mindspore.nn.Conv2d", **attributes)
    context = context_of(reference, port)
    finding = Finding(Stage.STRUCTURE, Verdict.UNPAIRED, name, "", layer, static=True)
    return explain(finding, context).causes[0]


def test_a_parameter_that_one_side_lacks_is_a_bias_or_a_constant() -> None:
    assert lone("conv.bias", "conv").slug == "conv-bias-missing"
    assert lone("conv.scale", "conv").slug == "parameter-became-constant"
    assert lone("conv.scales.0", "conv").slug == "parameter-not-registered"
