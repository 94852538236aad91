"""What two optimizers were told, under one set of names, and where that differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paritydbg.model.finding import AttributeDifference
from paritydbg.model.record import Attribute, OptimizerRecord

_SLUGS = {
    "lr": "learning-rate",
    "weight_decay": "weight-decay-missing",
    "momentum": "momentum-convention",
    "nesterov": "nesterov-ignored",
    "dampening": "dampening",
    "eps": "optimizer-eps",
    "betas": "optimizer-betas",
    "alpha": "rmsprop-alpha",
    "centered": "rmsprop-centered",
    "amsgrad": "adam-amsgrad",
    "initial_accumulator_value": "optimizer-state-init",
}
# The common name -> the names it goes by, torch's first.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "lr": ("lr", "learning_rate"),
    "weight_decay": ("weight_decay",),
    "momentum": ("momentum",),
    "nesterov": ("nesterov", "use_nesterov"),
    "dampening": ("dampening",),
    "eps": ("eps", "epsilon"),
    "alpha": ("alpha", "decay"),
    "centered": ("centered",),
    "amsgrad": ("amsgrad", "use_amsgrad"),
    "initial_accumulator_value": ("initial_accumulator_value", "accum"),
    "lr_decay": ("lr_decay",),
    "loss_scale": ("loss_scale",),
}
# What an optimizer does whose record does not hold the name.
_ABSENT: Mapping[str, Attribute] = {
    "weight_decay": 0.0,
    "momentum": 0.0,
    "nesterov": False,
    "dampening": 0.0,
    "centered": False,
    "amsgrad": False,
}


@dataclass(frozen=True)
class Spelled:
    """A hyper-parameter's value and the name that its optimizer has for it."""

    name: str
    value: Attribute


def hyper_parameters(record: OptimizerRecord, group: int = 0) -> dict[str, Spelled]:
    """A group's hyper-parameters by their common names."""
    told = dict(record.groups[group]) if group < len(record.groups) else {}
    found: dict[str, Spelled] = {}
    for common, names in _NAMES.items():
        for name in names:
            if name in told:
                found.setdefault(common, Spelled(name, told[name]))
    if "betas" in told:
        found["betas"] = Spelled("betas", told["betas"])
    elif "beta1" in told and "beta2" in told:
        found["betas"] = Spelled("beta1, beta2", (told["beta1"], told["beta2"]))
    return found


def group_of(record: OptimizerRecord, parameter: str) -> int | None:
    """The number of the group that a parameter belongs to, None where it belongs to none."""
    for number, names in enumerate(record.parameters):
        if parameter in names:
            return number
    return None


def optimizer_differences(
    reference: OptimizerRecord,
    port: OptimizerRecord,
    partners: Mapping[str, str] | None = None,
) -> tuple[AttributeDifference, ...]:
    """What the two optimizers were told differently, by common names.

    Args:
        partners: reference's parameter name -> port's; with it groups are compared parameter by
            parameter, without it group by group in their order.
    """
    found: dict[str, AttributeDifference] = {}
    for mine, yours in _groups(reference, port, partners or {}):
        for one in _compared(hyper_parameters(reference, mine), hyper_parameters(port, yours)):
            found.setdefault(one.name, one)
    if partners:
        found |= {one.name: one for one in _membership(reference, port, partners)}
    return tuple(found.values())


def _groups(
    reference: OptimizerRecord, port: OptimizerRecord, partners: Mapping[str, str]
) -> Iterator[tuple[int, int]]:
    """Pairs of groups that hold a parameter in common."""
    if not partners:
        yield from zip(range(len(reference.groups)), range(len(port.groups)), strict=False)
        return
    pairs = {
        (mine, yours)
        for name, other in partners.items()
        if (mine := group_of(reference, name)) is not None
        and (yours := group_of(port, other)) is not None
    }
    yield from sorted(pairs)


def _compared(
    mine: Mapping[str, Spelled], yours: Mapping[str, Spelled]
) -> Iterator[AttributeDifference]:
    for common in (*_NAMES, "betas"):
        one, other = mine.get(common), yours.get(common)
        if one is None and other is None:
            continue
        left = one.value if one is not None else _ABSENT.get(common)
        right = other.value if other is not None else _ABSENT.get(common)
        if left is None or right is None or same_number(left, right):
            continue
        yield AttributeDifference(
            name=one.name if one is not None else common,
            reference=left,
            port=right,
            port_name=other.name if other is not None else common,
            expected=left,
            cause=_slug(common, left, right),
            changes="update",
        )


def _slug(common: str, left: Attribute, right: Attribute) -> str:
    if common == "weight_decay" and left and right:
        return "weight-decay-differs"
    return _SLUGS.get(common, "")


def same_number(left: Attribute, right: Attribute) -> bool:
    """Whether two hyper-parameters are the same, up to float32."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(
            same_number(a, b) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return abs(left - right) <= 1e-6 * max(abs(left), abs(right))
    return left == right


def _membership(
    reference: OptimizerRecord, port: OptimizerRecord, partners: Mapping[str, str]
) -> Iterator[AttributeDifference]:
    """Parameters that decay on one side alone."""
    left: list[str] = []
    right: list[str] = []
    decayed = 0
    for name, other in partners.items():
        mine, yours = decay_of(reference, name), decay_of(port, other)
        if mine is None or yours is None:
            continue
        decayed += bool(mine) and bool(yours)
        if bool(mine) != bool(yours):
            (left if mine else right).append(name)
    if decayed and (left or right):
        yield AttributeDifference(
            name="weight_decay",
            reference=f"decays {_listed(left)}" if left else f"leaves out {_listed(right)}",
            port=f"leaves out {_listed(left)}" if left else f"decays {_listed(right)}",
            port_name="weight_decay",
            cause="weight-decay-groups",
            changes="update",
        )


def decay_of(record: OptimizerRecord, parameter: str) -> float | None:
    """The weight decay of a parameter, None where the optimizer does not hold it."""
    group = group_of(record, parameter)
    if group is None:
        return None
    spelled = hyper_parameters(record, group).get("weight_decay")
    value = spelled.value if spelled is not None else 0.0
    return float(value) if isinstance(value, (int, float)) else None


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
