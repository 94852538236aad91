"""The code of candidates, executed: what it builds has the torch layer's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest
import torch
from mindspore import mint

from paritydbg.apimap.lookup import lookup
from paritydbg.explain.attributes import attribute_differences
from paritydbg.explain.candidate_code import code_for
from tests.explain.built_layers import record_of

T = torch.nn
LAYERS: dict[str, Callable[[], Any]] = {
    "linear": lambda: T.Linear(3, 4, bias=False),
    "convolution": lambda: T.Conv2d(4, 8, (3, 5), stride=2, padding=(1, 2), groups=2),
    "convolution in one dimension": lambda: T.Conv1d(3, 4, 3, padding=1, dilation=2, bias=False),
    "transposed convolution": lambda: T.ConvTranspose2d(3, 4, 3, 2, padding=1, output_padding=1),
    "max pool": lambda: T.MaxPool2d(3, 2, 1),
    "max pool that rounds up": lambda: T.MaxPool2d(3, 2, ceil_mode=True),
    "average pool": lambda: T.AvgPool2d(2, 2, 1, count_include_pad=False),
    "batch norm": lambda: T.BatchNorm2d(4, eps=1e-3, momentum=0.2),
    "batch norm without statistics": lambda: T.BatchNorm2d(4, track_running_stats=False),
    "layer norm": lambda: T.LayerNorm(5),
    "layer norm over two axes": lambda: T.LayerNorm((4, 5)),
    "group norm": lambda: T.GroupNorm(2, 4, eps=1e-4),
    "gelu": lambda: T.GELU(),
    "tanh gelu": lambda: T.GELU("tanh"),
    "leaky relu": lambda: T.LeakyReLU(0.3),
    "softmax": lambda: T.Softmax(1),
    "dropout": lambda: T.Dropout(0.1),
    "flatten": lambda: T.Flatten(2),
    "embedding": lambda: T.Embedding(5, 3, padding_idx=0),
    "lstm": lambda: T.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
    "attention": lambda: T.MultiheadAttention(8, 2, batch_first=True),
    "upsample": lambda: T.Upsample(size=(4, 4), mode="bilinear", align_corners=True),
    "cross entropy": lambda: T.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1),
    "smooth l1": lambda: T.SmoothL1Loss(beta=0.5),
    "divergence": lambda: T.KLDivLoss(reduction="batchmean"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_pasted_code_builds_a_layer_with_the_same_settings(name: str) -> None:
    layer = LAYERS[name]()
    reference = record_of(layer, training=False)
    entry = lookup(f"torch.nn.{type(layer).__name__}")
    assert entry is not None
    lines = [code for a in entry.alternatives if (code := code_for(a.api, reference, axes=3))]
    assert lines
    for line in lines:
        built = eval(line, {"nn": ms.nn, "mint": mint})
        assert attribute_differences(reference, record_of(built, training=False)) == (), line
