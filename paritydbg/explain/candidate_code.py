"""A line of MindSpore code for a torch layer, its own values filled in, in MindSpore's conventions."""

from __future__ import annotations

from collections.abc import Mapping

from paritydbg.explain.candidate_arguments import BUILDERS, shown
from paritydbg.explain.mint_arguments import mint_arguments
from paritydbg.model.record import Attribute, LayerRecord

_TORCH_NAMES = (
    *("lr", "betas", "eps", "weight_decay"),
    *("momentum", "dampening", "nesterov", "alpha"),
)
_SGD_NAMES = {
    "lr": "learning_rate",
    "momentum": "momentum",
    "dampening": "dampening",
    "weight_decay": "weight_decay",
    "nesterov": "nesterov",
}


def code_for(api: str, reference: LayerRecord, axes: int | None = None) -> str | None:
    """``nn.LayerNorm((64,), epsilon=1e-05)`` for a torch layer's record.

    ``""`` where no code is known, None where the API cannot do what the layer does.

    Args:
        axes: the number of axes of what the layer is fed, None where that is not known.
    """
    short = api.removeprefix("mindspore.")
    home, _, name = short.rpartition(".")
    if home == "mint.nn":
        arguments = mint_arguments(name, reference)
    elif home == "nn" and name in BUILDERS:
        arguments = BUILDERS[name](reference, axes)
    else:
        return ""
    if arguments is None:
        return None if home == "nn" and name in BUILDERS else ""
    listed = ", ".join(f"{key}={text}" if key else text for key, text in arguments)
    return f"{short}({listed})"


def optimizer_code(api: str, kind: str, values: Mapping[str, Attribute]) -> str:
    """A call of a MindSpore optimizer for the values of a torch one; ``""`` where none is known."""
    short = api.removeprefix("mindspore.")
    if short.startswith("experimental.optim."):
        # These take torch's own arguments.
        told = {name: values[name] for name in _TORCH_NAMES if name in values}
        if kind == "Adam" and short.endswith("AdamW"):
            if values.get("weight_decay"):
                # AdamW's decay is decoupled, Adam's is not.
                return ""
            told["weight_decay"] = 0.0
    elif short == "nn.SGD" and kind == "SGD":
        told = {port: values[name] for name, port in _SGD_NAMES.items() if name in values}
    else:
        return ""
    listed = "".join(f", {name}={shown(value)}" for name, value in told.items())
    return f"{short}(net.trainable_params(){listed})"
