"""The line of code that makes an optimizer as its record describes it, in its own framework."""

from __future__ import annotations

from paritydbg.explain.candidate_arguments import shown
from paritydbg.explain.code_lines import PARAMETERS
from paritydbg.model.record import Attribute, OptimizerRecord

# What torch's records hold beside the arguments that change an update.
_TORCH_LEFT_OUT = frozenset(
    ("foreach", "capturable", "differentiable", "fused", "maximize", "decoupled_weight_decay")
    + ("initial_lr", "params")
)
# The names in MindSpore's records that its constructors call otherwise.
_MINDSPORE_NAMES = {"lr": "learning_rate"}
_MINDSPORE = {
    "Adam": ("lr", "beta1", "beta2", "eps", "use_amsgrad", "weight_decay", "loss_scale"),
    "AdamWeightDecay": ("lr", "beta1", "beta2", "eps", "weight_decay"),
    "Momentum": ("lr", "momentum", "weight_decay", "loss_scale", "use_nesterov"),
    "SGD": ("lr", "momentum", "dampening", "weight_decay", "nesterov", "loss_scale"),
    "RMSProp": ("lr", "decay", "momentum", "epsilon", "centered", "loss_scale", "weight_decay"),
    "Adagrad": ("accum", "lr", "update_slots", "loss_scale", "weight_decay"),
    "AdaMax": ("lr", "beta1", "beta2", "eps", "weight_decay", "loss_scale"),
    "Lamb": ("lr", "beta1", "beta2", "eps", "weight_decay"),
}


def optimizer_line(record: OptimizerRecord) -> str:
    """``torch.optim.AdamW(net.trainable_params(), lr=0.001, …)`` of the first group; ``""`` if unknown."""
    if not record.groups:
        return ""
    told: dict[str, Attribute] = dict(record.groups[0])
    package, _, rest = record.api.partition(".")
    if (package == "torch" and rest.startswith("optim.")) or rest.startswith("experimental."):
        named = {name: value for name, value in told.items() if name not in _TORCH_LEFT_OUT}
    elif package == "mindspore" and record.type in _MINDSPORE:
        known = [name for name in _MINDSPORE[record.type] if name in told]
        named = {_MINDSPORE_NAMES.get(name, name): told[name] for name in known}
    else:
        return ""
    arguments = "".join(f", {k}={shown(v)}" for k, v in named.items() if v is not None)
    home = "torch.optim" if package == "torch" else record.api.rpartition(".")[0]
    if "experimental" in home:
        home = "mindspore.experimental.optim"
    elif package == "mindspore":
        home = "mindspore.nn"
    return f"{home}.{record.type}({PARAMETERS}{arguments})"
