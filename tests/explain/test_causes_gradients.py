"""Causes of backward findings: what the gradients and the forward values beside them tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from paritydbg.explain.explain import explain
from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Role
from paritydbg.model.finding import Finding, Stage
from tests.explain.memory_run import MemoryRun, context_of, finding_of

RANDOM = np.random.default_rng(2)
G = RANDOM.standard_normal((5, 8))


def at_parameter(reference: Any, port: Any, trainable: bool = True) -> Finding:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, gradient in zip(runs, (reference, port), strict=True):
        run.parameter("fc.weight", G, trainable=run is runs[0] or trainable)
        run.layer("fc", "torch.nn.Linear" if run is runs[0] else "mindspore.nn.Dense")
        run.add(Role.GRAD, "fc.weight", gradient)
    context = context_of(*runs)
    return explain(finding_of(context, Stage.BACKWARD, "fc.weight", Role.GRAD), context)


def at_layer(x: Any, arrives: Any, reference: Any, port: Any, api: str, **given: Any) -> Finding:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, gradient in zip(runs, (reference, port), strict=True):
        if "weight" in given:
            run.parameter("act.weight", given["weight"])
        run.layer("act", api)
        run.add(Role.INPUT, "act", x, slot="0")
        run.add(Role.OUTPUT, "act", x)
        run.add(Role.GRAD_OUTPUT, "act", arrives)
        run.add(Role.GRAD_INPUT, "act", gradient, slot="0")
    context = context_of(*runs)
    return explain(finding_of(context, Stage.BACKWARD, "act", Role.GRAD_INPUT), context)


def test_a_doubled_gradient_counts_twice() -> None:
    assert at_parameter(G, 2 * G).causes[0].slug == "gradient-accumulated-twice"


def test_a_gradient_that_is_zero_on_one_side_is_cut_there() -> None:
    assert at_parameter(G, 0 * G).causes[0].slug == "stop-gradient-extra"
    assert at_parameter(0 * G, G).causes[0].slug == "stop-gradient-missing"
    assert at_parameter(G, 0 * G, trainable=False).causes[0].slug == "parameter-frozen"


def test_a_constant_factor_is_named() -> None:
    found = at_parameter(G, G / 8)
    scaled = next(cause for cause in found.causes if cause.slug == "gradient-scaled")
    assert "1/8" in scaled.summary
    assert "0.125" in scaled.evidence


def test_a_gradient_without_a_simple_relation_points_at_the_backward_itself() -> None:
    found = at_parameter(G, np.sin(3 * G))
    assert [cause.slug for cause in found.causes] == ["custom-bprop-wrong"]


def test_a_gradient_that_never_arrives_is_cut_unless_the_parameter_is_frozen() -> None:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run in runs:
        run.parameter("fc.weight", G)
    context = context_of(*runs)
    finding = Finding(Stage.BACKWARD, Verdict.DIVERGED, "fc.weight", "", "fc.weight")
    assert explain(finding, context).causes[0].slug == "stop-gradient-extra"
    extra = Finding(Stage.BACKWARD, Verdict.UNPAIRED, "fc.weight", "", "fc.weight")
    assert explain(extra, context).causes[0].slug == "stop-gradient-missing"


def test_the_derivative_that_a_backward_used_is_named() -> None:
    x = RANDOM.standard_normal((5, 8))
    found = at_layer(x, G, G * (x > 0), G, "torch.nn.ReLU")
    assert found.causes[0].slug == "custom-bprop-wrong"
    assert "where the input is positive" in found.causes[0].summary


def test_a_norm_whose_statistics_are_detached_is_recognised() -> None:
    x, weight = RANDOM.standard_normal((5, 8)), RANDOM.uniform(0.5, 2, 8)
    r = 1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5)
    g = G * weight
    whole = g * r - x * r**3 * np.mean(g * x, -1, keepdims=True)
    found = at_layer(x, G, whole, g * r, "mine.RMSNorm", weight=weight)
    assert found.causes[0].slug == "stop-gradient-extra"


def test_nan_in_the_gradient_of_zero_rows_comes_from_a_norm() -> None:
    x = RANDOM.standard_normal((5, 8))
    x[2] = 0.0
    lost = G.copy()
    lost[2] = np.nan
    assert at_layer(x, G, G, lost, "mine.Embed").causes[0].slug == "norm-gradient-at-zero-nan"


def test_nan_where_the_other_side_has_zero_comes_from_a_mask_behind_a_logarithm() -> None:
    x = RANDOM.standard_normal((5, 8)) + 0.5
    mine = np.where(x > 0, G, 0.0)
    lost = np.where(x > 0, G, np.nan)
    assert at_layer(x, G, mine, lost, "mine.Log").causes[0].slug == "where-after-log-nan-gradient"


def test_the_path_that_is_cut_is_told_by_the_gradient_that_is_left() -> None:
    other = RANDOM.standard_normal((5, 8))
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, gradient in zip(runs, (G + other, other), strict=True):
        run.layer("block", "mine.Block")
        run.add(Role.GRAD_OUTPUT, "add", G)
        run.add(Role.GRAD_OUTPUT, "block", gradient)
    context = context_of(*runs)
    finding = finding_of(context, Stage.BACKWARD, "after block", Role.GRAD_OUTPUT, name="block")
    cause = explain(finding, context).causes[0]
    assert cause.slug == "stop-gradient-extra"
    assert "add" in cause.summary


def test_an_embedding_row_without_gradient_on_one_side_is_padding() -> None:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    held = G.copy()
    held[0] = 0.0
    for run, gradient in zip(runs, (held, G), strict=True):
        run.parameter("embed.weight", G)
        run.layer("embed", "torch.nn.Embedding")
        run.add(Role.GRAD, "embed.weight", gradient)
    context = context_of(*runs)
    finding = finding_of(context, Stage.BACKWARD, "embed.weight", Role.GRAD)
    assert explain(finding, context).causes[0].slug == "embedding-padding-gradient"
