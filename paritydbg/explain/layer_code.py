"""The line of code that builds a layer as its record describes it, in its own framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paritydbg.explain.candidate_arguments import shown
from paritydbg.explain.reading import family_of, flavour_of
from paritydbg.model.record import Attribute, LayerRecord

Kept = Callable[[LayerRecord], Attribute]


@dataclass(frozen=True)
class _Signature:
    """Arguments that a layer keeps as attributes under the same names.

    Attributes:
        first: given by position; the line cannot be written without one of them.
        others: given by name where the record has them.
        bias: the argument that tells of a bias, which the layer's parameters show.
        derived: arguments that are worked out from other attributes.
    """

    first: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    bias: str = ""
    derived: tuple[tuple[str, Kept], ...] = ()


def _momentum(record: LayerRecord) -> Attribute:
    """MindSpore's batch norms keep 1 - momentum."""
    kept = record.attribute("momentum")
    return round(1 - kept, 9) if isinstance(kept, (int, float)) else None


def _approximate(record: LayerRecord) -> Attribute:
    kept = record.attribute("approximate")
    return kept == "tanh" if isinstance(kept, str) else kept


def _affine(record: LayerRecord) -> Attribute:
    return bool(record.parameters)


_CONVOLVED = ("in_channels", "out_channels", "kernel_size")
_TORCH = {
    "Linear": _Signature(("in_features", "out_features"), bias="bias"),
    **dict.fromkeys(
        ("Conv1d", "Conv2d", "Conv3d"),
        _Signature(
            _CONVOLVED, ("stride", "padding", "dilation", "groups", "padding_mode"), bias="bias"
        ),
    ),
    **dict.fromkeys(
        ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
        _Signature(
            _CONVOLVED, ("stride", "padding", "output_padding", "groups", "dilation"), bias="bias"
        ),
    ),
    **dict.fromkeys(
        ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d"),
        _Signature(("num_features",), ("eps", "momentum", "affine", "track_running_stats")),
    ),
    "LayerNorm": _Signature(("normalized_shape",), ("eps", "elementwise_affine")),
    "RMSNorm": _Signature(("normalized_shape",), ("eps", "elementwise_affine")),
    "GroupNorm": _Signature(("num_groups", "num_channels"), ("eps", "affine")),
    "GELU": _Signature((), ("approximate",)),
    "LeakyReLU": _Signature((), ("negative_slope",)),
    **dict.fromkeys(("ELU", "CELU"), _Signature((), ("alpha",))),
    "PReLU": _Signature((), ("num_parameters",)),
    "Softplus": _Signature((), ("beta", "threshold")),
    "Hardtanh": _Signature((), ("min_val", "max_val")),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin", "GLU"), _Signature((), ("dim",))),
    **dict.fromkeys(("Hardshrink", "Softshrink"), _Signature((), ("lambd",))),
    "Threshold": _Signature(("threshold", "value")),
    **dict.fromkeys(
        ("MaxPool1d", "MaxPool2d", "MaxPool3d"),
        _Signature(("kernel_size",), ("stride", "padding", "dilation", "ceil_mode")),
    ),
    **dict.fromkeys(
        ("AvgPool1d", "AvgPool2d", "AvgPool3d"),
        _Signature(
            ("kernel_size",),
            ("stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"),
        ),
    ),
    **dict.fromkeys(
        ("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"),
        _Signature(("output_size",)),
    ),
    "Embedding": _Signature(("num_embeddings", "embedding_dim"), ("padding_idx",)),
    **dict.fromkeys(
        ("LSTM", "GRU", "RNN"),
        _Signature(
            ("input_size", "hidden_size"),
            ("num_layers", "bias", "batch_first", "bidirectional", "nonlinearity"),
        ),
    ),
    "MultiheadAttention": _Signature(("embed_dim", "num_heads"), ("batch_first",)),
    "Upsample": _Signature((), ("size", "scale_factor", "mode", "align_corners")),
    "Flatten": _Signature((), ("start_dim", "end_dim")),
    "PixelShuffle": _Signature(("upscale_factor",)),
    "PixelUnshuffle": _Signature(("downscale_factor",)),
    "ChannelShuffle": _Signature(("groups",)),
    **dict.fromkeys(
        ("ZeroPad2d", "ReflectionPad1d", "ReflectionPad2d", "ReplicationPad1d", "ReplicationPad2d"),
        _Signature(("padding",)),
    ),
    **dict.fromkeys(
        ("ReLU", "ReLU6", "SiLU", "Mish", "Sigmoid", "Tanh", "Hardswish", "Hardsigmoid")
        + ("LogSigmoid", "Softsign", "Identity", "SELU", "Tanhshrink"),
        _Signature(),
    ),
}
_POOLED = ("stride", "pad_mode", "padding")
_MINDSPORE = {
    "Linear": _Signature(("in_channels", "out_channels"), bias="has_bias"),
    **dict.fromkeys(
        ("Conv1d", "Conv2d", "Conv3d"),
        _Signature(
            _CONVOLVED, ("stride", "pad_mode", "padding", "dilation", "group"), bias="has_bias"
        ),
    ),
    **dict.fromkeys(
        ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
        _Signature(
            _CONVOLVED,
            ("stride", "pad_mode", "padding", "output_padding", "dilation", "group"),
            bias="has_bias",
        ),
    ),
    **dict.fromkeys(
        ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"),
        _Signature(
            ("num_features",), ("eps", "use_batch_statistics"), derived=(("momentum", _momentum),)
        ),
    ),
    "LayerNorm": _Signature(
        ("normalized_shape",), ("begin_norm_axis", "begin_params_axis", "epsilon")
    ),
    "GroupNorm": _Signature(
        ("num_groups", "num_channels"), ("eps",), derived=(("affine", _affine),)
    ),
    "GELU": _Signature((), derived=(("approximate", _approximate),)),
    **dict.fromkeys(("LeakyReLU", "ELU", "CELU"), _Signature((), ("alpha",))),
    "Hardtanh": _Signature((), ("min_val", "max_val")),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin", "GLU"), _Signature((), ("axis",))),
    **dict.fromkeys(("Hardshrink", "Softshrink"), _Signature((), ("lambd",))),
    **dict.fromkeys(
        ("MaxPool1d", "MaxPool2d", "MaxPool3d"),
        _Signature(("kernel_size",), (*_POOLED, "dilation", "ceil_mode")),
    ),
    **dict.fromkeys(
        ("AvgPool1d", "AvgPool2d", "AvgPool3d"),
        _Signature(
            ("kernel_size",), (*_POOLED, "ceil_mode", "count_include_pad", "divisor_override")
        ),
    ),
    **dict.fromkeys(
        ("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"),
        _Signature(("output_size",)),
    ),
    "Embedding": _Signature(("vocab_size", "embedding_size"), ("padding_idx",)),
    **dict.fromkeys(
        ("LSTM", "GRU", "RNN"),
        _Signature(
            ("input_size", "hidden_size"),
            ("num_layers", "has_bias", "batch_first", "bidirectional"),
        ),
    ),
    "MultiheadAttention": _Signature(("embed_dim", "num_heads"), ("batch_first",)),
    "Upsample": _Signature((), ("size", "scale_factor", "mode", "align_corners")),
    "Flatten": _Signature((), ("start_dim", "end_dim")),
    "PixelShuffle": _Signature(("upscale_factor",)),
    "PixelUnshuffle": _Signature(("downscale_factor",)),
    "ChannelShuffle": _Signature(("groups",)),
    **dict.fromkeys(
        ("ReLU", "ReLU6", "SiLU", "Mish", "Sigmoid", "Tanh", "Hardswish", "Hardsigmoid")
        + ("LogSigmoid", "Softsign", "Identity", "SELU", "Tanhshrink"),
        _Signature(),
    ),
}
_TABLES = {"torch": _TORCH, "mindspore": _MINDSPORE, "mint": _TORCH}


def layer_code(record: LayerRecord, twin: LayerRecord | None = None) -> str:
    """``torch.nn.LayerNorm((64,), eps=1e-05)``; ``""`` where the record does not tell enough.

    Args:
        record: a layer of either framework.
        twin: the other side's layer, asked for a size that this one does not keep (MindSpore's
            recurrent layers forget how wide their input is).
    """
    signature = _TABLES.get(flavour_of(record), {}).get(family_of(record))
    if signature is None or record.api.partition(".")[0] not in ("torch", "mindspore"):
        return ""
    values = dict(record.attributes)
    arguments = []
    for name in signature.first:
        value = values.get(name)
        if value is None and twin is not None:
            value = twin.attribute(name)
        if value is None:
            return ""
        arguments.append(shown(value))
    named = [(name, values[name]) for name in signature.others if name in values]
    named += [(name, read(record)) for name, read in signature.derived]
    # None is each of these arguments' own default.
    arguments += [f"{name}={shown(value)}" for name, value in named if value is not None]
    if signature.bias:
        has = any(name.rpartition(".")[2] == "bias" for name in record.parameters)
        arguments.append(f"{signature.bias}={has}")
    return f"{record.api}({', '.join(arguments)})"
