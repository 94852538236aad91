"""Causes in attention, masks, positions and recurrent layers, told by values alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from paritydbg.explain.explain import explain
from paritydbg.model.event import Role
from paritydbg.model.finding import Finding, Stage
from tests.explain.memory_run import MemoryRun, context_of, finding_of
from tests.explain.test_causes_forward import glued, softmax

RANDOM = np.random.default_rng(1)
BATCH, LENGTH, WIDTH = 3, 7, 16
QUERY, KEY, VALUE = RANDOM.standard_normal((3, BATCH, LENGTH, WIDTH))


def rotated(x: Any, theta: float, pairs: bool) -> Any:
    half = x.shape[-1] // 2
    angles = np.outer(np.arange(x.shape[-2]), theta ** (-np.arange(half) / half))
    first = slice(0, None, 2) if pairs else slice(0, half)
    second = slice(1, None, 2) if pairs else slice(half, None)
    out = np.empty_like(x)
    a, b = x[..., first], x[..., second]
    out[..., first] = a * np.cos(angles) - b * np.sin(angles)
    out[..., second] = a * np.sin(angles) + b * np.cos(angles)
    return out


def attention(
    query: Any = QUERY,
    key: Any = KEY,
    value: Any = VALUE,
    *,
    heads: int = 4,
    scale: float | None = None,
    first_future: int | None = 1,
    theta: float = 0.0,
    pairs: bool = False,
    tiled: bool = False,
    mask: Any = None,
) -> Any:
    width = query.shape[-1] // heads

    def split(x: Any) -> Any:
        return x.reshape(BATCH, LENGTH, -1, width).swapaxes(1, 2)

    query, key, value = split(query), split(key), split(value)
    if theta:
        query, key = rotated(query, theta, pairs), rotated(key, theta, pairs)
    times = heads // key.shape[1]
    repeat = (lambda x: np.tile(x, (1, times, 1, 1))) if tiled else lambda x: np.repeat(x, times, 1)
    scores = query @ repeat(key).swapaxes(-1, -2) * (scale or 1 / math.sqrt(width))
    if first_future is not None:
        future = np.triu(np.ones((LENGTH, LENGTH), bool), first_future)
        scores = np.where(future, -1e30, scores)
    if mask is not None:
        scores = np.where(mask[:, None, None] != 0, scores, -1e30)
    done = softmax(scores) @ repeat(value)
    return done.swapaxes(1, 2).reshape(BATCH, LENGTH, -1)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "num-heads-mismatch": ({}, {"heads": 2}),
    "attention-scale": ({}, {"scale": 1 / math.sqrt(WIDTH)}),
    "causal-off-by-one": ({}, {"first_future": 2}),
    "mask-missing": ({}, {"first_future": None}),
    "rope-theta": ({"theta": 10000.0}, {"theta": 500000.0}),
    "rope-interleaved-vs-half": ({"theta": 10000.0}, {"theta": 10000.0, "pairs": True}),
}


@pytest.mark.parametrize("slug", CHANGES)
def test_the_one_setting_in_which_attention_differs_is_found(slug: str) -> None:
    mine, yours = CHANGES[slug]
    sources = {"block.q_proj": QUERY, "block.k_proj": KEY, "block.v_proj": VALUE}
    found = glued(sources, attention(**mine), attention(**yours))
    assert found.causes[0].slug == slug


def test_key_heads_that_are_tiled_are_told_from_key_heads_that_are_repeated() -> None:
    key, value = KEY[..., :8], VALUE[..., :8]
    sources = {"block.query": QUERY, "block.key": key, "block.value": value}
    mine = attention(key=key, value=value)
    found = glued(sources, mine, attention(key=key, value=value, tiled=True))
    assert found.causes[0].slug == "kv-head-repeat-order"


def test_a_fused_projection_that_is_cut_head_by_head_is_found() -> None:
    fused = np.concatenate([QUERY, KEY, VALUE], -1)
    cut = fused.reshape(BATCH, LENGTH, 4, 3, 4).transpose(3, 0, 1, 2, 4)
    parts = [part.reshape(BATCH, LENGTH, WIDTH) for part in cut]
    found = glued({"block.qkv": fused}, attention(), attention(*parts))
    assert found.causes[0].slug == "fused-qkv-layout"


def test_a_padding_mask_that_is_not_applied_is_missed() -> None:
    mask = (np.arange(LENGTH)[None] < np.array([[7], [4], [5]])).astype(np.float64)
    sources = {"mask": mask, "block.q": QUERY, "block.k": KEY, "block.v": VALUE}
    found = glued(sources, attention(mask=mask), attention())
    assert found.causes[0].slug == "mask-missing"


def test_a_mask_that_leaves_nothing_out_is_missing() -> None:
    mask = np.where(np.arange(LENGTH) < 4, 0.0, -10000.0)[None].repeat(2, 0)
    assert glued({}, mask, np.zeros_like(mask)).causes[0].slug == "mask-missing"
    assert glued({}, mask, -10000.0 - mask).causes[0].slug == "mask-sign"


def test_a_row_that_is_masked_throughout_is_recognised_by_what_softmax_leaves_there() -> None:
    rows = softmax(RANDOM.standard_normal((2, 5, 5)))
    rows[1] = 0.2
    port = rows.copy()
    port[1] = np.nan
    assert glued({}, rows, port).causes[0].slug == "masked-row-minus-inf"


def test_positions_that_are_counted_from_another_number_are_offset() -> None:
    positions = np.arange(LENGTH)[None].repeat(2, 0)
    assert glued({}, positions, positions + 2).causes[0].slug == "position-ids-offset"


@pytest.mark.parametrize(
    ("base", "layout", "slug"),
    [(500000.0, "halves", "rope-theta"), (10000.0, "pairs", "rope-interleaved-vs-half")],
)
def test_tables_of_angles_are_read_back(base: float, layout: str, slug: str) -> None:
    def table(theta: float, layout: str) -> Any:
        angles = np.outer(np.arange(12), theta ** (-np.arange(4) / 4))
        twice = np.repeat(angles, 2, 1) if layout == "pairs" else np.tile(angles, (1, 2))
        return np.cos(twice)

    found = glued({}, table(10000.0, "halves"), table(base, layout))
    assert found.causes[0].slug == slug


def test_rotated_queries_are_read_back_into_pairs_and_angles() -> None:
    mine, yours = rotated(QUERY, 100.0, pairs=True), rotated(QUERY, 100.0, pairs=False)
    found = glued({"q_proj": QUERY}, mine, yours)
    assert found.causes[0].slug == "rope-interleaved-vs-half"


GATES: dict[str, dict[str, Any]] = {
    "gru-gate-order": {"order": (1, 0, 2)},
    "gru-reset-after": {"before": True},
    "gru-bias-merged": {"merged": True},
}


def gru(
    x: Any,
    weights: dict[str, Any],
    *,
    order: tuple[int, ...] = (0, 1, 2),
    before: bool = False,
    merged: bool = False,
) -> Any:
    def sigmoid(v: Any) -> Any:
        return 1 / (1 + np.exp(-v))

    h = np.zeros((x.shape[0], 5))
    outputs = []
    w_ih, w_hh = (np.split(weights[n], 3) for n in ("weight_ih_l0", "weight_hh_l0"))
    b_ih, b_hh = (np.split(weights[n], 3) for n in ("bias_ih_l0", "bias_hh_l0"))
    r, z, n = order
    for step in range(x.shape[1]):
        given = [x[:, step] @ w.T + b for w, b in zip(w_ih, b_ih, strict=True)]
        reset = sigmoid(given[r] + h @ w_hh[r].T + b_hh[r])
        update = sigmoid(given[z] + h @ w_hh[z].T + b_hh[z])
        inner = reset * (h @ w_hh[n].T + b_hh[n])
        if before:
            inner = (reset * h) @ w_hh[n].T + b_hh[n]
        if merged:
            inner = reset * (h @ w_hh[n].T) + b_hh[n]
        h = (1 - update) * np.tanh(given[n] + inner) + update * h
        outputs.append(h)
    return np.stack(outputs, 1)


def recurrent(port: dict[str, Any]) -> Finding:
    weights = {
        "weight_ih_l0": RANDOM.standard_normal((15, 4)),
        "weight_hh_l0": RANDOM.standard_normal((15, 5)),
        "bias_ih_l0": RANDOM.standard_normal(15),
        "bias_hh_l0": RANDOM.standard_normal(15),
    }
    x = RANDOM.standard_normal((2, 6, 4))
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, changes in zip(runs, ({}, port), strict=True):
        for name, value in weights.items():
            run.parameter(f"gru.{name}", value)
        run.layer("gru", "torch.nn.GRU", batch_first=True)
        run.add(Role.INPUT, "gru", x, slot="0")
        run.add(Role.OUTPUT, "gru", gru(x, weights, **changes), slot="0")
    context = context_of(*runs)
    return explain(finding_of(context, Stage.FORWARD, "gru", Role.OUTPUT), context)


@pytest.mark.parametrize("slug", GATES)
def test_the_one_setting_in_which_a_gru_differs_is_found(slug: str) -> None:
    assert recurrent(GATES[slug]).causes[0].slug == slug


def test_the_last_step_is_told_from_each_sequences_own_last_step() -> None:
    outputs = RANDOM.standard_normal((3, LENGTH, 8))
    lengths = np.array([7, 4, 5])
    own = outputs[np.arange(3), lengths - 1]
    found = glued({"lengths": lengths, "rnn": outputs}, own, outputs[:, -1])
    assert found.causes[0].slug == "rnn-sequence-length"
    kept = (np.arange(LENGTH)[None] < lengths[:, None])[..., None]
    mean = (outputs * kept).sum(1) / lengths[:, None]
    over_all = glued({"lengths": lengths, "rnn": outputs}, mean, outputs.mean(1))
    assert over_all.causes[0].slug == "mask-missing"
