"""The parameters and buffers that a layer calculates with, under one name for both frameworks."""

from __future__ import annotations

from paritydbg.explain.causes.forms import Weights
from paritydbg.explain.context import Context, Floats
from paritydbg.model.event import Phase, Role
from paritydbg.model.record import LayerRecord

_CANONICAL = {
    "gamma": "weight",
    "beta": "bias",
    "embedding_table": "weight",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "g": "weight",
    "scale": "weight",
}


def weights_of(
    layers: tuple[LayerRecord | None, LayerRecord | None], context: Context, step: int
) -> tuple[Weights, Weights]:
    """Both layers' own tensors before the step, each in its own layout."""
    return (
        _own(layers[0], context, step, of_port=False),
        _own(layers[1], context, step, of_port=True),
    )


def canonical(name: str) -> str:
    """``weight`` for ``bn1.gamma``."""
    last = name.rpartition(".")[2]
    return _CANONICAL.get(last, last)


def _own(layer: LayerRecord | None, context: Context, step: int, of_port: bool) -> Weights:
    if layer is None:
        return {}
    read = context.port_values if of_port else context.reference_values
    found: dict[str, Floats] = {}
    for name in layer.parameters:
        for role in (Role.PARAMETER, Role.BUFFER):
            # A parameter that nothing moved may have been recorded at the first step alone.
            for moment in (step, 1):
                values = read(name, role, moment, Phase.FORWARD)
                if values is not None:
                    found.setdefault(canonical(name), values)
    return found
