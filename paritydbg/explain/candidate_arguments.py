"""The arguments of MindSpore's layers for a torch layer's record, in MindSpore's conventions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paritydbg.explain.padding import axes_of, per_axis
from paritydbg.model.record import Attribute, LayerRecord

# (argument's name or "" for a positional one, its text)
Arguments = list[tuple[str, str]]
# A record and the number of axes of what the layer is fed, where that is known.
Builder = Callable[[LayerRecord, int | None], Arguments | None]


def shown(value: Attribute) -> str:
    """A value as one writes it in Python."""
    return repr(value)


def _named(record: LayerRecord, names: Mapping[str, str]) -> Arguments:
    """Keyword arguments for the attributes that the record has, under the names given."""
    values = dict(record.attributes)
    return [(port, shown(values[name])) for name, port in names.items() if name in values]


def _positional(record: LayerRecord, *names: str) -> Arguments | None:
    values = dict(record.attributes)
    if any(values.get(name) is None for name in names):
        return None
    return [("", shown(_flat(values[name]))) for name in names]


def _flat(value: Attribute) -> Attribute:
    """One number for a tuple of equal ones."""
    if isinstance(value, tuple) and len(set(value)) == 1:
        return value[0]
    return value


def _has(record: LayerRecord, name: str) -> bool:
    return any(parameter.rpartition(".")[2] == name for parameter in record.parameters)


def _pads(record: LayerRecord) -> Arguments | None:
    """``pad_mode`` and ``padding`` for a torch convolution or pool."""
    padding = record.attribute("padding")
    if isinstance(padding, str):
        return [("pad_mode", shown(padding))]
    axes = axes_of(record)
    amounts = per_axis(padding, axes)
    if amounts is None:
        return None
    if not any(amounts):
        return [("pad_mode", "'valid'")]
    return [("pad_mode", "'pad'"), ("padding", shown(_doubled(amounts)))]


def _doubled(amounts: tuple[int, ...]) -> Attribute:
    """MindSpore's convolutions take both edges of every axis where the axes differ."""
    if len(set(amounts)) == 1:
        return amounts[0]
    return tuple(side for amount in amounts for side in (amount, amount))


def _unless(record: LayerRecord, name: str, port: str, default: Attribute) -> Arguments:
    """The argument, left out where it has the value that both frameworks default to."""
    value = _flat(record.attribute(name, default))
    return [] if value == default else [(port, shown(value))]


def _dense(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "in_features", "out_features")
    if found is not None and not _has(record, "bias"):
        found.append(("has_bias", "False"))
    return found


def _convolution(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "in_channels", "out_channels", "kernel_size")
    pads = _pads(record)
    if found is None or pads is None:
        return None
    found += _unless(record, "stride", "stride", 1) + pads
    found += _unless(record, "dilation", "dilation", 1) + _unless(record, "groups", "group", 1)
    return [*found, ("has_bias", str(_has(record, "bias")))]


def _transposed(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "in_channels", "out_channels", "kernel_size")
    axes = axes_of(record)
    amounts = per_axis(record.attribute("padding"), axes)
    extra = per_axis(record.attribute("output_padding", 0), axes)
    if found is None or amounts is None or extra is None:
        return None
    found += _unless(record, "stride", "stride", 1)
    # output_padding zero-fills the far edge on MindSpore's CPU; cutting less there is the same thing.
    sides = tuple(s for p, more in zip(amounts, extra, strict=True) for s in (p, p - more))
    if min(sides) < 0:
        return None
    padding = _flat(sides)
    found += (
        [("pad_mode", "'pad'"), ("padding", shown(padding))]
        if any(sides)
        else [("pad_mode", "'valid'")]
    )
    found += _unless(record, "dilation", "dilation", 1) + _unless(record, "groups", "group", 1)
    return [*found, ("has_bias", str(_has(record, "bias")))]


def _pool(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    kernel = record.attribute("kernel_size")
    stride = record.attribute("stride")
    pads = _pads(record)
    if kernel is None or pads is None:
        return None
    # The stride is always written: MindSpore's default is 1, torch's the kernel.
    found: Arguments = [("", shown(_flat(kernel)))]
    found.append(("stride", shown(_flat(kernel if stride is None else stride))))
    ceil = record.attribute("ceil_mode") is True
    if ceil and pads == [("pad_mode", "'valid'")]:
        pads = [("pad_mode", "'pad'")]
    found += pads + ([("ceil_mode", "True")] if ceil else [])
    if record.attribute("count_include_pad") is False:
        found.append(("count_include_pad", "False"))
    return found


def _batch_norm(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "num_features")
    momentum = record.attribute("momentum")
    if found is None or not isinstance(momentum, (int, float)):
        return None
    found += _named(record, {"eps": "eps"})
    found.append(("momentum", shown(round(1 - momentum, 9))))
    found += _unless(record, "affine", "affine", True)
    if record.attribute("track_running_stats") is False:
        found.append(("use_batch_statistics", "True"))
    return found


def _layer_norm(record: LayerRecord, axes: int | None) -> Arguments | None:
    shape = record.attribute("normalized_shape")
    if not isinstance(shape, tuple) or record.attribute("elementwise_affine") is False:
        return None
    found: Arguments = [("", shown(shape))]
    if len(shape) > 1:
        # Negative axes other than -1 are refused.
        if axes is None:
            return None
        first = str(axes - len(shape))
        found += [("begin_norm_axis", first), ("begin_params_axis", first)]
    return found + _named(record, {"eps": "epsilon"})


def _group_norm(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "num_groups", "num_channels")
    if found is None:
        return None
    return found + _named(record, {"eps": "eps"}) + _unless(record, "affine", "affine", True)


def _gelu(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    return [("approximate", str(record.attribute("approximate", "none") == "tanh"))]


def _renamed(*pairs: tuple[str, str]) -> Builder:
    return lambda record, _axes: _named(record, dict(pairs)) or None


def _plain(_record: LayerRecord, _axes: int | None) -> Arguments | None:
    return []


def _elu(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    # mindspore.nn.ELU refuses any other alpha.
    return [] if record.attribute("alpha") == 1.0 else None


def _embedding(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "num_embeddings", "embedding_dim")
    if found is None:
        return None
    return found + _unless(record, "padding_idx", "padding_idx", None)


def _recurrent(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "input_size", "hidden_size")
    if found is None or record.attribute("proj_size", 0):
        return None
    found += _unless(record, "num_layers", "num_layers", 1)
    found += _unless(record, "bias", "has_bias", True)
    found += _unless(record, "batch_first", "batch_first", False)
    found += _unless(record, "dropout", "dropout", 0.0)
    return found + _unless(record, "bidirectional", "bidirectional", False)


def _attention(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found = _positional(record, "embed_dim", "num_heads")
    if found is None:
        return None
    found += _unless(record, "dropout", "dropout", 0.0)
    return found + _unless(record, "batch_first", "batch_first", False)


def _upsample(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    found: Arguments = []
    for name in ("size", "scale_factor"):
        value = record.attribute(name)
        if value is not None:
            axes = 1 if record.attribute("mode") == "linear" else 2
            if name == "scale_factor" and not isinstance(value, tuple):
                value = (value,) * axes
            found.append((name, shown(value)))
    found += _named(record, {"mode": "mode"})
    if record.attribute("align_corners") is not None:
        found += _named(record, {"align_corners": "align_corners"})
    return found


def _flatten(record: LayerRecord, _axes: int | None = None) -> Arguments | None:
    return _unless(record, "start_dim", "start_dim", 1) + _unless(record, "end_dim", "end_dim", -1)


def _loss(*names: str) -> Builder:
    return lambda record, _axes: _named(record, {name: name for name in names})


BUILDERS: dict[str, Builder] = {
    "Dense": _dense,
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), _convolution),
    **dict.fromkeys(("Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose"), _transposed),
    **dict.fromkeys(("MaxPool1d", "MaxPool2d", "MaxPool3d"), _pool),
    **dict.fromkeys(("AvgPool1d", "AvgPool2d", "AvgPool3d"), _pool),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"), _batch_norm),
    "LayerNorm": _layer_norm,
    "GroupNorm": _group_norm,
    "GELU": _gelu,
    "LeakyReLU": _renamed(("negative_slope", "alpha")),
    "ELU": _elu,
    "CELU": _renamed(("alpha", "alpha")),
    **dict.fromkeys(("Softmax", "LogSoftmax", "GLU"), _renamed(("dim", "axis"))),
    **dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), _renamed(("p", "p"))),
    "Hardtanh": _renamed(("min_val", "min_val"), ("max_val", "max_val")),
    "Flatten": _flatten,
    "PixelShuffle": _renamed(("upscale_factor", "upscale_factor")),
    "PixelUnshuffle": _renamed(("downscale_factor", "downscale_factor")),
    "ChannelShuffle": _renamed(("groups", "groups")),
    **dict.fromkeys(
        ("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"),
        _renamed(("output_size", "output_size")),
    ),
    "Embedding": _embedding,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "MultiheadAttention": _attention,
    "Upsample": _upsample,
    **dict.fromkeys(
        ("ReLU", "ReLU6", "SiLU", "Mish", "Sigmoid", "Tanh", "HSwish", "HSigmoid", "LogSigmoid"),
        _plain,
    ),
    "CrossEntropyLoss": _loss("ignore_index", "reduction", "label_smoothing"),
    "NLLLoss": _loss("ignore_index", "reduction"),
    **dict.fromkeys(
        ("KLDivLoss", "MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss"), _loss("reduction")
    ),
    "SmoothL1Loss": _loss("beta", "reduction"),
    "HuberLoss": _loss("reduction", "delta"),
}
