"""Attribute differences between layers built in both frameworks: equal meaning is silent, a change is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mindspore as ms
import pytest
import torch
from mindspore import mint

from paritydbg.explain.attributes import attribute_differences
from paritydbg.model.record import LayerRecord
from tests.explain.built_layers import record_of

T, M = torch.nn, ms.nn
Build = Callable[[], Any]

# torch layer, the same in MindSpore, a changed MindSpore layer, the cause of the change.
KINDS: dict[str, tuple[Build, Build, Build, str]] = {
    "Linear": (
        lambda: T.Linear(3, 4),
        lambda: M.Dense(3, 4),
        lambda: M.Dense(3, 4, has_bias=False),
        "bias-missing",
    ),
    "mint Linear": (
        lambda: T.Linear(3, 4, bias=False),
        lambda: mint.nn.Linear(3, 4, bias=False),
        lambda: mint.nn.Linear(3, 4),
        "bias-missing",
    ),
    "Conv2d padding": (
        lambda: T.Conv2d(3, 4, 3, padding=1),
        lambda: M.Conv2d(3, 4, 3, pad_mode="pad", padding=1, has_bias=True),
        lambda: M.Conv2d(3, 4, 3, pad_mode="valid", has_bias=True),
        "pad-mode",
    ),
    "Conv2d same at stride 1": (
        lambda: T.Conv2d(3, 4, 3, padding=1),
        lambda: M.Conv2d(3, 4, 3, has_bias=True),
        lambda: M.Conv2d(3, 4, 3),
        "conv-bias-missing",
    ),
    "Conv2d stride 2": (
        lambda: T.Conv2d(3, 4, 3, stride=2, padding=1),
        lambda: M.Conv2d(3, 4, 3, stride=2, pad_mode="pad", padding=1, has_bias=True),
        lambda: M.Conv2d(3, 4, 3, stride=2, pad_mode="same", has_bias=True),
        "conv-same-vs-symmetric-padding",
    ),
    "Conv2d sides": (
        lambda: T.Conv2d(3, 4, 3, padding=(1, 2)),
        lambda: M.Conv2d(3, 4, 3, pad_mode="pad", padding=(1, 1, 2, 2), has_bias=True),
        lambda: M.Conv2d(3, 4, 3, pad_mode="pad", padding=(1, 2, 1, 2), has_bias=True),
        "pad-mode",
    ),
    "Conv2d bias": (
        lambda: T.Conv2d(3, 4, 3),
        lambda: M.Conv2d(3, 4, 3, pad_mode="valid", has_bias=True),
        lambda: M.Conv2d(3, 4, 3, pad_mode="valid"),
        "conv-bias-missing",
    ),
    "Conv2d dilation": (
        lambda: T.Conv2d(3, 4, 3, dilation=2, bias=False),
        lambda: M.Conv2d(3, 4, 3, pad_mode="valid", dilation=2),
        lambda: M.Conv2d(3, 4, 3, pad_mode="valid"),
        "conv-dilation",
    ),
    "Conv2d groups": (
        lambda: T.Conv2d(4, 4, 3, groups=2, bias=False),
        lambda: M.Conv2d(4, 4, 3, pad_mode="valid", group=2),
        lambda: M.Conv2d(4, 4, 3, pad_mode="valid", group=4),
        "conv-groups",
    ),
    "Conv2d reflect": (
        lambda: T.Conv2d(3, 4, 3, padding=1, bias=False),
        lambda: M.Conv2d(3, 4, 3, pad_mode="pad", padding=1),
        lambda: M.Conv2d(3, 4, 3, pad_mode="pad", padding=1, stride=2),
        "conv-stride-position",
    ),
    "Conv1d": (
        lambda: T.Conv1d(3, 4, 3, padding=1, bias=False),
        lambda: M.Conv1d(3, 4, 3, pad_mode="pad", padding=1),
        lambda: M.Conv1d(3, 4, 3, pad_mode="pad", padding=2),
        "pad-mode",
    ),
    "Conv3d": (
        lambda: T.Conv3d(3, 4, 3, bias=False),
        lambda: M.Conv3d(3, 4, 3, pad_mode="valid"),
        lambda: M.Conv3d(3, 4, 3),
        "conv-same-vs-symmetric-padding",
    ),
    "mint Conv2d": (
        lambda: T.Conv2d(3, 4, 3, padding=1),
        lambda: mint.nn.Conv2d(3, 4, 3, padding=1),
        lambda: mint.nn.Conv2d(3, 4, 3),
        "pad-mode",
    ),
    "ConvTranspose2d": (
        lambda: T.ConvTranspose2d(3, 4, 3, stride=2, padding=1, bias=False),
        lambda: M.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="pad", padding=1),
        lambda: M.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="same"),
        "conv-transpose-padding",
    ),
    "ConvTranspose2d output_padding": (
        lambda: T.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1, bias=False),
        lambda: M.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="pad", padding=(1, 0, 1, 0)),
        lambda: M.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="same"),
        "conv-transpose-padding",
    ),
    "BatchNorm2d momentum": (
        lambda: T.BatchNorm2d(4),
        lambda: M.BatchNorm2d(4),
        lambda: M.BatchNorm2d(4, momentum=0.1),
        "bn-momentum-convention",
    ),
    "BatchNorm1d eps": (
        lambda: T.BatchNorm1d(4),
        lambda: M.BatchNorm1d(4),
        lambda: M.BatchNorm1d(4, eps=1e-3),
        "batchnorm-eps",
    ),
    "BatchNorm2d statistics": (
        lambda: T.BatchNorm2d(4, track_running_stats=False),
        lambda: M.BatchNorm2d(4, use_batch_statistics=True),
        lambda: M.BatchNorm2d(4, use_batch_statistics=False),
        "train-mode-not-set",
    ),
    "mint BatchNorm2d": (
        lambda: T.BatchNorm2d(4, momentum=0.2),
        lambda: mint.nn.BatchNorm2d(4, momentum=0.2),
        lambda: mint.nn.BatchNorm2d(4, momentum=0.8),
        "bn-momentum-convention",
    ),
    "LayerNorm": (
        lambda: T.LayerNorm(4),
        lambda: M.LayerNorm((4,), epsilon=1e-5),
        lambda: M.LayerNorm((4,)),
        "layernorm-eps-default",
    ),
    "mint LayerNorm": (
        lambda: T.LayerNorm(4),
        lambda: mint.nn.LayerNorm(4),
        lambda: mint.nn.LayerNorm(4, eps=1e-6),
        "layernorm-eps-default",
    ),
    "GroupNorm eps": (
        lambda: T.GroupNorm(2, 4),
        lambda: M.GroupNorm(2, 4),
        lambda: M.GroupNorm(2, 4, eps=1e-6),
        "groupnorm-eps-site",
    ),
    "GroupNorm groups": (
        lambda: T.GroupNorm(2, 4),
        lambda: M.GroupNorm(2, 4),
        lambda: M.GroupNorm(4, 4),
        "groupnorm-num-groups",
    ),
    "GELU erf": (
        lambda: T.GELU(),
        lambda: M.GELU(approximate=False),
        lambda: M.GELU(),
        "gelu-approximate-default",
    ),
    "GELU tanh": (
        lambda: T.GELU("tanh"),
        lambda: M.GELU(),
        lambda: mint.nn.GELU(),
        "gelu-approximate-default",
    ),
    "LeakyReLU": (
        lambda: T.LeakyReLU(0.01),
        lambda: M.LeakyReLU(alpha=0.01),
        lambda: M.LeakyReLU(),
        "leakyrelu-slope-default",
    ),
    "ELU": (
        lambda: T.ELU(),
        lambda: mint.nn.ELU(),
        lambda: mint.nn.ELU(alpha=0.5),
        "elu-alpha",
    ),
    "Hardtanh": (
        lambda: T.Hardtanh(),
        lambda: M.Hardtanh(),
        lambda: M.Hardtanh(min_val=0.0),
        "clamp-bounds",
    ),
    "Softmax": (
        lambda: T.Softmax(1),
        lambda: mint.nn.Softmax(1),
        lambda: mint.nn.Softmax(-1),
        "softmax-axis",
    ),
    "Dropout p": (
        lambda: T.Dropout(0.1),
        lambda: M.Dropout(p=0.1),
        lambda: M.Dropout(0.1),
        "dropout-keep-prob",
    ),
    "Dropout keep_prob": (
        lambda: T.Dropout(0.1),
        lambda: M.Dropout(keep_prob=0.9),
        lambda: M.Dropout(keep_prob=0.5),
        "dropout-keep-prob",
    ),
    "Dropout2d": (
        lambda: T.Dropout2d(0.1),
        lambda: M.Dropout2d(0.1),
        lambda: M.Dropout2d(0.9),
        "dropout-keep-prob",
    ),
    "MaxPool2d": (
        lambda: T.MaxPool2d(3, 2, 1),
        lambda: M.MaxPool2d(3, 2, pad_mode="pad", padding=1),
        lambda: M.MaxPool2d(3, 2, pad_mode="same"),
        "maxpool-same-vs-symmetric-padding",
    ),
    "MaxPool2d stride": (
        lambda: T.MaxPool2d(2),
        lambda: M.MaxPool2d(2, 2),
        lambda: M.MaxPool2d(2),
        "pool-stride",
    ),
    "MaxPool1d": (
        lambda: T.MaxPool1d(3, 2, 1),
        lambda: M.MaxPool1d(3, 2, pad_mode="pad", padding=1),
        lambda: M.MaxPool1d(3, 2),
        "pad-mode",
    ),
    "mint MaxPool2d": (
        lambda: T.MaxPool2d(3, 2, 1),
        lambda: mint.nn.MaxPool2d(3, 2, 1),
        lambda: mint.nn.MaxPool2d(3, 2, 1, ceil_mode=True),
        "pool-ceil-mode",
    ),
    "AvgPool2d": (
        lambda: T.AvgPool2d(3, 1, 1, count_include_pad=False),
        lambda: M.AvgPool2d(3, 1, pad_mode="same"),
        lambda: M.AvgPool2d(3, 1),
        "pad-mode",
    ),
    "AvgPool2d counts": (
        lambda: T.AvgPool2d(3, 1, 1),
        lambda: M.AvgPool2d(3, 1, pad_mode="pad", padding=1),
        lambda: M.AvgPool2d(3, 1, pad_mode="same"),
        "avgpool-count-include-pad",
    ),
    "AdaptiveAvgPool2d": (
        lambda: T.AdaptiveAvgPool2d((1, 1)),
        lambda: mint.nn.AdaptiveAvgPool2d(1),
        lambda: mint.nn.AdaptiveAvgPool2d(2),
        "adaptive-pool-bins",
    ),
    "Upsample": (
        lambda: T.Upsample(size=(3, 4), mode="bilinear"),
        lambda: M.Upsample(size=(3, 4), mode="bilinear", align_corners=False),
        lambda: M.Upsample(size=(3, 4), mode="bilinear", align_corners=True),
        "resize-align-corners",
    ),
    "ReflectionPad2d": (
        lambda: T.ReflectionPad2d((1, 2, 3, 4)),
        lambda: M.ReflectionPad2d((1, 2, 3, 4)),
        lambda: M.ReflectionPad2d((3, 4, 1, 2)),
        "pad-order",
    ),
    "Flatten": (
        lambda: T.Flatten(),
        lambda: M.Flatten(),
        lambda: M.Flatten(start_dim=2),
        "flatten-order",
    ),
    "Embedding": (
        lambda: T.Embedding(5, 3, padding_idx=0),
        lambda: M.Embedding(5, 3, padding_idx=0),
        lambda: M.Embedding(5, 3),
        "embedding-padding-gradient",
    ),
    "LSTM": (
        lambda: T.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
        lambda: M.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
        lambda: M.LSTM(3, 4, 2, bidirectional=True),
        "rnn-batch-first",
    ),
    "GRU": (
        lambda: T.GRU(3, 4),
        lambda: M.GRU(3, 4),
        lambda: M.GRU(3, 4, num_layers=2),
        "rnn-num-layers",
    ),
    "MultiheadAttention": (
        lambda: T.MultiheadAttention(8, 2),
        lambda: M.MultiheadAttention(8, 2),
        lambda: M.MultiheadAttention(8, 4),
        "num-heads-mismatch",
    ),
    "TransformerEncoderLayer": (
        lambda: T.TransformerEncoderLayer(8, 2),
        lambda: M.TransformerEncoderLayer(8, 2),
        lambda: M.TransformerEncoderLayer(8, 2, norm_first=True),
        "residual-before-norm",
    ),
    "CrossEntropyLoss": (
        lambda: T.CrossEntropyLoss(label_smoothing=0.1),
        lambda: M.CrossEntropyLoss(label_smoothing=0.1),
        lambda: M.CrossEntropyLoss(),
        "label-smoothing",
    ),
    "CrossEntropyLoss ignore_index": (
        lambda: T.CrossEntropyLoss(ignore_index=0),
        lambda: M.CrossEntropyLoss(ignore_index=0),
        lambda: M.CrossEntropyLoss(),
        "loss-denominator-ignore-index",
    ),
    "SoftmaxCrossEntropyWithLogits": (
        lambda: T.CrossEntropyLoss(),
        lambda: M.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        lambda: M.SoftmaxCrossEntropyWithLogits(sparse=True),
        "loss-reduction",
    ),
    "MSELoss": (
        lambda: T.MSELoss(),
        lambda: M.MSELoss(),
        lambda: M.MSELoss(reduction="sum"),
        "loss-reduction",
    ),
    "L1Loss": (
        lambda: T.L1Loss(),
        lambda: M.MAELoss(),
        lambda: M.MAELoss(reduction="sum"),
        "loss-reduction",
    ),
    "SmoothL1Loss": (
        lambda: T.SmoothL1Loss(),
        lambda: M.SmoothL1Loss(reduction="mean"),
        lambda: M.SmoothL1Loss(beta=0.5, reduction="mean"),
        "smoothl1-beta",
    ),
    "KLDivLoss": (
        lambda: T.KLDivLoss(reduction="batchmean"),
        lambda: M.KLDivLoss(reduction="batchmean"),
        lambda: M.KLDivLoss(),
        "kldiv-reduction",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_layers_that_mean_the_same_have_no_difference(kind: str) -> None:
    reference, port, _, _ = KINDS[kind]
    assert attribute_differences(record_of(reference()), record_of(port())) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_one_change_is_one_difference_with_its_cause(kind: str) -> None:
    reference, _, changed, cause = KINDS[kind]
    found = attribute_differences(record_of(reference()), record_of(changed()))
    assert [difference.cause for difference in found] == [cause]


def test_a_torch_layer_agrees_with_itself() -> None:
    for reference, _, _, _ in KINDS.values():
        record = record_of(reference())
        assert attribute_differences(record, record) == ()


def test_the_expected_value_is_in_the_ports_own_convention() -> None:
    (found,) = attribute_differences(
        record_of(T.BatchNorm2d(4, momentum=0.03)), record_of(M.BatchNorm2d(4, momentum=0.03))
    )
    assert (found.name, found.reference, found.port_name) == ("momentum", 0.03, "momentum")
    assert (found.port, found.expected) == (0.03, 0.97)
    assert found.changes == "running-stats"


def test_the_expected_padding_of_a_transposed_convolution_needs_no_output_padding() -> None:
    (found,) = attribute_differences(
        record_of(T.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)),
        record_of(M.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="same", has_bias=True)),
    )
    assert found.port_name == "pad_mode, padding"
    assert found.expected == ("pad", (1, 0, 1, 0))


def test_same_padding_that_may_fit_the_input_leaves_its_effect_open() -> None:
    reference = record_of(T.Conv2d(3, 4, 3, stride=2, padding=1, bias=False))
    (open_case,) = attribute_differences(reference, record_of(M.Conv2d(3, 4, 3, stride=2)))
    assert open_case.changes == ""
    unpadded = record_of(T.Conv2d(3, 4, 3, stride=2, bias=False))
    (sure,) = attribute_differences(unpadded, record_of(M.Conv2d(3, 4, 3, stride=2)))
    assert sure.changes == "forward"


def test_a_mode_counts_where_the_layer_has_one() -> None:
    pairs = ((T.BatchNorm2d(3), M.BatchNorm2d(3)), (T.Linear(3, 3), M.Dense(3, 3)))
    found = [
        attribute_differences(record_of(left), record_of(right, training=False))
        for left, right in pairs
    ]
    assert [d.name for (d,) in found] == ["training", "training"]
    assert [d.cause for (d,) in found] == ["train-mode-not-set", "train-mode-not-set"]
    assert [d.changes for (d,) in found] == ["forward", ""]


def test_a_batchnorm_frozen_by_flag_agrees_with_one_frozen_by_setting() -> None:
    reference = record_of(T.BatchNorm2d(3), training=False)
    port = record_of(M.BatchNorm2d(3, use_batch_statistics=False))
    assert attribute_differences(reference, port) == ()


def own(**attributes: Any) -> LayerRecord:
    return LayerRecord(
        "attn", "Attention", "model.Attention", True, True, tuple(sorted(attributes.items()))
    )


def test_own_classes_are_compared_by_the_names_they_share() -> None:
    (found,) = attribute_differences(own(h=2, scale=0.5), own(h=4, scale=0.5, cls_name="x"))
    assert (found.name, found.reference, found.port) == ("h", 2, 4)
    assert found.cause == "num-heads-mismatch"
    (scaled,) = attribute_differences(own(h=2, scale=0.5), own(h=2, scale=0.25))
    assert scaled.cause == "attention-scale"


def test_own_classes_may_name_one_thing_differently() -> None:
    (found,) = attribute_differences(own(n_heads=2), own(num_heads=4))
    assert (found.name, found.port_name) == ("n_heads", "num_heads")
    assert attribute_differences(own(n_heads=2), own(num_heads=2)) == ()


def test_what_cannot_be_compared_is_no_difference() -> None:
    assert attribute_differences(own(h=2), own(h="two")) == ()
    assert attribute_differences(own(h=None), own(h=2)) == ()
    assert attribute_differences(own(dtype="float32"), own(dtype="float16")) == ()


def test_an_unknown_attribute_leaves_its_effect_open() -> None:
    (found,) = attribute_differences(own(flavour=1), own(flavour=2))
    assert (found.cause, found.changes) == ("", "")
    renamed = replace(own(flavour=1), type="RMSNorm", name="norm")
    assert attribute_differences(renamed, renamed) == ()
