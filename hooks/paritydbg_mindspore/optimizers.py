"""What a MindSpore optimizer was told, and the learning rates it uses, read without any operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindspore import Tensor, nn
from mindspore.experimental.optim import Optimizer as ExperimentalOptimizer

from paritydbg.model.record import Attribute, Attributes, OptimizerRecord
from paritydbg_mindspore.structure import NOT_PLAIN, api_of, first_names, plain_value

KINDS = (nn.Optimizer, ExperimentalOptimizer)


def optimizer_record(optimizer: object, nets: Mapping[str, object]) -> OptimizerRecord:
    """Class, hyper-parameters and parameter names; of an unknown kind of object its class alone."""
    kind = type(optimizer)
    names = first_names(nets)
    if isinstance(optimizer, ExperimentalOptimizer):
        groups = [dict(group) for group in optimizer.param_groups]
        members = [group.pop("params") for group in groups]
    elif isinstance(optimizer, nn.Optimizer):
        groups, members = _classic_groups(optimizer)
    else:
        return OptimizerRecord(kind.__name__, api_of(kind))
    return OptimizerRecord(
        type=kind.__name__,
        api=api_of(kind),
        groups=tuple(_attributes(group) for group in groups),
        parameters=tuple(tuple(names[id(p)] for p in group if id(p) in names) for group in members),
    )


def learning_rates(optimizer: object) -> list[float] | None:
    """The rate of each group for the next update; None where only an operator could tell."""
    if isinstance(optimizer, ExperimentalOptimizer):
        return [_number(group["lr"]) for group in optimizer.param_groups]
    if not isinstance(optimizer, nn.Optimizer):
        return None
    rates = optimizer.learning_rate
    step = int(optimizer.global_step.asnumpy()[0])
    if _is_listed(rates):
        # One entry per parameter; groups share an object.
        distinct = list({id(rate): rate for rate in rates}.values())
    else:
        distinct = [rates]
    found = [_rate_at(rate, step) for rate in distinct]
    return None if None in found else [rate for rate in found if rate is not None]


def _rate_at(rate: Any, step: int) -> float | None:
    """The rate at a step: a constant, or an entry of the table that a list of rates becomes."""
    if isinstance(rate, Tensor):
        return _number(rate)
    table = getattr(rate, "learning_rate", None)
    if isinstance(table, Tensor) and table.ndim == 1:
        values = table.asnumpy()
        return float(str(values[min(step, len(values) - 1)]))
    # A schedule written as a cell: its construct runs operators.
    return None


def _classic_groups(optimizer: nn.Optimizer) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Hyper-parameters and parameters per group of an ``nn`` optimizer, as it was constructed."""
    if not hasattr(optimizer, "init_params"):
        return _built_groups(optimizer)
    shared = {k: v for k, v in getattr(optimizer, "init_args", {}).items() if k != "kwargs"}
    rate = getattr(optimizer, "init_learning_rate", None)
    given = getattr(optimizer, "init_params", {}).get("params", list(optimizer.parameters))
    if not (given and isinstance(given[0], dict)):
        return [{**shared, "lr": rate}], [list(optimizer.parameters)]
    groups = [group for group in given if "params" in group]
    settings = [
        {**shared, "lr": rate, **{k: v for k, v in group.items() if k != "params"}}
        for group in groups
    ]
    return settings, [list(group["params"]) for group in groups]


def _built_groups(optimizer: nn.Optimizer) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """The same of an optimizer that keeps no record of its arguments (AdamWeightDecay): what it made of
    them, neighbours of one rate and decay taken for a group."""
    shared = {
        name: value for name in _HELD if (value := getattr(optimizer, name, None)) is not None
    }
    members = list(optimizer.parameters)
    decays, rates = optimizer.weight_decay, optimizer.learning_rate
    per_member = isinstance(decays, (tuple, list))
    each_decay = list(decays) if per_member else [decays] * len(members)
    each_rate = list(rates) if _is_listed(rates) else [rates] * len(members)
    settings: list[dict[str, Any]] = []
    groups: list[list[Any]] = []
    last: tuple[float, int] | None = None
    for member, decay, rate in zip(members, each_decay, each_rate, strict=True):
        told = (_number(decay), id(rate))
        if told != last:
            settings.append({**shared, "lr": _rate_at(rate, 0), "weight_decay": told[0]})
            groups.append([])
            last = told
        groups[-1].append(member)
    return settings, groups


# Hyper-parameters that MindSpore's optimizers keep under their own names.
_HELD = (
    "beta1",
    "beta2",
    "eps",
    "momentum",
    "dampening",
    "nesterov",
    "decay",
    "epsilon",
    "loss_scale",
)


def _is_listed(rates: Any) -> bool:
    """Whether there is a rate for each parameter."""
    return isinstance(rates, (tuple, list)) or type(rates).__name__ == "CellList"


def _attributes(group: Mapping[str, Any]) -> Attributes:
    found: dict[str, Attribute] = {}
    for name, value in group.items():
        if isinstance(value, Tensor) and value.size == 1:
            value = _number(value)
        plain = plain_value(value)
        if plain is not NOT_PLAIN:
            found[name] = plain
    return tuple(sorted(found.items()))


def _number(value: Any) -> float:
    """A scalar as a float; of a float32 the shortest one that means the same."""
    if isinstance(value, Tensor):
        return float(str(value.asnumpy().reshape(())[()]))
    return float(value)
