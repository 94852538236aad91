"""The arguments of mint's layers for a torch layer's record: torch's own names and order."""

from __future__ import annotations

from dataclasses import dataclass

from paritydbg.explain.candidate_arguments import Arguments, shown
from paritydbg.model.record import Attribute, LayerRecord

_DEFAULTS: dict[str, Attribute] = {
    "stride": 1,
    "padding": 0,
    "dilation": 1,
    "groups": 1,
    "affine": True,
    "track_running_stats": True,
    "start_dim": 1,
    "end_dim": -1,
    "padding_idx": None,
    "ceil_mode": False,
    "count_include_pad": True,
}


@dataclass(frozen=True)
class _Signature:
    """What a layer takes.

    Attributes:
        first: given by position.
        always: given by name whatever the value.
        others: given by name where the value is not torch's default.
        bias: whether it takes ``bias``, which the layer's parameters tell.
    """

    first: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    bias: bool = False


_CONVOLUTION = _Signature(
    ("in_channels", "out_channels", "kernel_size"),
    others=("stride", "padding", "dilation", "groups"),
    bias=True,
)
_BATCH_NORM = _Signature(("num_features",), ("eps", "momentum"), ("affine", "track_running_stats"))
_AVERAGE = _Signature(("kernel_size",), ("stride",), ("padding", "ceil_mode", "count_include_pad"))
_SIGNATURES = {
    "Linear": _Signature(("in_features", "out_features"), bias=True),
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), _CONVOLUTION),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), _BATCH_NORM),
    "LayerNorm": _Signature(("normalized_shape",), ("eps",)),
    "GroupNorm": _Signature(("num_groups", "num_channels"), ("eps",), ("affine",)),
    "Embedding": _Signature(("num_embeddings", "embedding_dim"), others=("padding_idx",)),
    **dict.fromkeys(("Dropout", "Dropout2d"), _Signature((), ("p",))),
    "MaxPool2d": _Signature(("kernel_size",), ("stride",), ("padding", "dilation", "ceil_mode")),
    **dict.fromkeys(("AvgPool1d", "AvgPool2d", "AvgPool3d"), _AVERAGE),
    "GELU": _Signature((), ("approximate",)),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _Signature((), ("dim",))),
    "Flatten": _Signature((), (), ("start_dim", "end_dim")),
    **dict.fromkeys(("SiLU", "Mish", "ReLU", "Sigmoid", "Tanh", "ReLU6"), _Signature()),
}


def mint_arguments(name: str, record: LayerRecord) -> Arguments | None:
    """The arguments, None for a layer that is not known."""
    signature = _SIGNATURES.get(name)
    if signature is None:
        return None
    values = dict(record.attributes)
    if any(values.get(given) is None for given in signature.first):
        return None
    found: Arguments = [("", shown(_short(given, values[given]))) for given in signature.first]
    for given in signature.always:
        if values.get(given) is not None:
            found.append((given, shown(_short(given, values[given]))))
    for given in signature.others:
        value = _short(given, values.get(given, _DEFAULTS[given]))
        if value != _DEFAULTS[given]:
            found.append((given, shown(value)))
    if signature.bias and not any(p.rpartition(".")[2] == "bias" for p in record.parameters):
        found.append(("bias", "False"))
    return found


def _short(name: str, value: Attribute) -> Attribute:
    """One number for a tuple of equal ones; a shape stays a shape."""
    if isinstance(value, tuple) and name != "normalized_shape" and len(set(value)) == 1:
        return value[0]
    return value
