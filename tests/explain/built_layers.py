"""Records of layers of both frameworks as the hook packages make them: public plain attributes."""

from __future__ import annotations

from typing import Any

from paritydbg.model.record import Attribute, LayerRecord


def record_of(layer: Any, training: bool = True) -> LayerRecord:
    """The record of a freshly built torch module or MindSpore cell."""
    kind = type(layer)
    package = kind.__module__.partition(".")[0]
    if package == "torch":
        api = f"torch.nn.{kind.__name__}"
        names = [n for n, p in layer._parameters.items() if p is not None]
    elif package == "mindspore":
        mint = kind.__module__.startswith("mindspore.mint") or kind.__name__.endswith("Ext")
        api = f"mindspore.{'mint.' if mint else ''}nn.{kind.__name__.removesuffix('Ext')}"
        names = list(layer._params)
    else:
        api = f"{kind.__module__}.{kind.__name__}"
        names = []
    attributes = tuple(
        (name, _plain(value))
        for name, value in sorted(vars(layer).items())
        if not name.startswith("_") and name != "training" and _is_plain(value)
    )
    return LayerRecord(
        name="layer",
        type=kind.__name__,
        api=api,
        leaf=True,
        training=training,
        attributes=attributes,
        parameters=tuple(f"layer.{name}" for name in names),
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, bool | int | float | str)


def _plain(value: Any) -> Attribute:
    return tuple(_plain(v) for v in value) if isinstance(value, tuple | list) else value
