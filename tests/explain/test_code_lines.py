"""Lines of code as calls: literals in one call, anything else is refused unrun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest
import torch

from paritydbg.adapters import load_adapter
from paritydbg.explain.code_lines import call_of
from paritydbg.explain.layer_code import layer_code
from paritydbg.explain.optimizer_lines import optimizer_line
from paritydbg.model.record import LayerRecord, OptimizerRecord
from paritydbg.model.trial import Call
from tests.explain.built_layers import record_of

T, M = torch.nn, ms.nn


def test_a_line_is_read_as_what_it_calls() -> None:
    assert call_of("nn.LayerNorm((64,), epsilon=1e-05)") == Call(
        "mindspore.nn.LayerNorm", ((64,),), (("epsilon", 1e-5),)
    )
    assert call_of("torch.nn.Linear(3, 4, bias=False)", "torch") == Call(
        "torch.nn.Linear", (3, 4), (("bias", False),)
    )
    optimizer = call_of("nn.SGD(net.trainable_params(), learning_rate=-0.1)")
    assert optimizer == Call("mindspore.nn.SGD", (), (("learning_rate", -0.1),), True)


@pytest.mark.parametrize(
    "line",
    [
        "nn.ReLU(__import__('os').system('true'))",
        "nn.ReLU(x)",
        "nn.ReLU(**{})",
        "nn.ReLU(); nn.ReLU()",
        "(lambda: 1)()",
        "nn.ReLU",
        "nn[0](1)",
        "nn.ReLU(b'bytes')",
        "nn.ReLU(",
    ],
)
def test_anything_else_is_refused(line: str) -> None:
    assert call_of(line) is None


LAYERS: dict[str, Callable[[], Any]] = {
    "linear": lambda: T.Linear(3, 4, bias=False),
    "convolution": lambda: T.Conv2d(4, 8, (3, 5), 2, (1, 2), 2, groups=2, padding_mode="reflect"),
    "transposed": lambda: T.ConvTranspose2d(3, 4, 3, 2, 1, output_padding=1),
    "batch norm": lambda: T.BatchNorm2d(4, eps=1e-3, momentum=0.2),
    "layer norm": lambda: T.LayerNorm((4, 5), eps=1e-6),
    "group norm": lambda: T.GroupNorm(2, 4, affine=False),
    "gelu": lambda: T.GELU("tanh"),
    "leaky relu": lambda: T.LeakyReLU(0.3),
    "average pool": lambda: T.AvgPool2d(2, 2, 1, count_include_pad=False),
    "max pool": lambda: T.MaxPool2d(3, 2, 1, ceil_mode=True),
    "embedding": lambda: T.Embedding(5, 3, padding_idx=0),
    "lstm": lambda: T.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
    "attention": lambda: T.MultiheadAttention(8, 2, batch_first=True),
    "upsample": lambda: T.Upsample(scale_factor=2.0, mode="bilinear", align_corners=True),
    "dense": lambda: M.Dense(3, 4, has_bias=False),
    "cell convolution": lambda: M.Conv2d(4, 8, 3, 2, "pad", 1, group=2, has_bias=True),
    "cell transposed": lambda: M.Conv2dTranspose(3, 4, 3, 2, "pad", 1, has_bias=True),
    "cell batch norm": lambda: M.BatchNorm2d(4, eps=1e-3, momentum=0.8),
    "cell layer norm": lambda: M.LayerNorm((4,), epsilon=1e-3),
    "cell group norm": lambda: M.GroupNorm(2, 4),
    "cell gelu": lambda: M.GELU(approximate=False),
    "cell leaky relu": lambda: M.LeakyReLU(0.2),
    "cell max pool": lambda: M.MaxPool2d(3, 2, "same"),
    "cell average pool": lambda: M.AvgPool2d(3, 2, "valid"),
    "cell embedding": lambda: M.Embedding(5, 3, padding_idx=0),
    "cell softmax": lambda: M.Softmax(1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layers_own_line_builds_a_layer_of_the_same_record(name: str) -> None:
    record = record_of(LAYERS[name](), training=False)
    package = record.api.partition(".")[0]
    call = call_of(layer_code(record), package)
    assert call is not None
    module = {"torch": torch, "mindspore": ms}[package]
    kind = getattr(module.nn, call.api.rpartition(".")[2])
    again = record_of(kind(*call.arguments, **dict(call.keywords)), training=False)
    assert again == record


def test_a_width_that_one_side_forgets_is_asked_of_the_other() -> None:
    cell = record_of(M.LSTM(3, 4, batch_first=True), training=False)
    line = layer_code(cell, record_of(T.LSTM(3, 4, batch_first=True), training=False))
    assert line.startswith("mindspore.nn.LSTM(3, 4, ")
    assert "batch_first=True" in line


def test_a_persons_own_layer_has_no_line() -> None:
    assert layer_code(LayerRecord("norm", "LayerNorm", "net.LayerNorm", True, True)) == ""


def test_optimizers_as_they_are_recorded_are_lines() -> None:
    net = T.Linear(2, 2)
    adapter = load_adapter("torch")
    made = torch.optim.AdamW(net.parameters(), lr=1e-3, eps=1e-6, weight_decay=0.1)
    line = optimizer_line(adapter.optimizer_record(made, {"": net}))
    call = call_of(line, "torch")
    assert call is not None
    assert call.of_parameters
    again = torch.optim.AdamW(net.parameters(), *call.arguments, **dict(call.keywords))
    assert again.defaults == made.defaults
    cell = M.Dense(2, 2)
    adam = M.AdamWeightDecay(cell.trainable_params(), 1e-3, beta1=0.8)
    line = optimizer_line(load_adapter("mindspore").optimizer_record(adam, {"": cell}))
    assert line.startswith("mindspore.nn.AdamWeightDecay(net.trainable_params(), learning_rate=")
    assert "beta1=0.8" in line
    assert optimizer_line(OptimizerRecord("Own", "net.Own", ((("lr", 0.1),),))) == ""
