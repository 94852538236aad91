"""The rules by which optimizers move a parameter, in float64, with the variants that ports fall into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from paritydbg.explain.context import Floats
from paritydbg.explain.optimizers import Spelled, hyper_parameters
from paritydbg.model.record import Attribute, OptimizerRecord

Kind = Literal["sgd", "adam", "rmsprop"]
Place = Literal["outside", "inside", "uncorrected"]


@dataclass(frozen=True)
class Rule:
    """A rule with all its numbers.

    Attributes:
        kind: family.
        lr, weight_decay, eps: as usual.
        betas: of Adam; RMSprop takes the second as its decay.
        momentum, dampening, nesterov: of SGD and RMSprop.
        decoupled: decay moves the parameter directly instead of joining the gradient.
        corrected: Adam's bias correction.
        eps_place: outside the root, inside it, or outside the root of the uncorrected average.
        first_dampened: whether dampening counts in the first step (torch: no).
        averaged: momentum as a running mean, (1 - momentum) times the gradient.
        second_start: the square average's first value.
        centered: RMSprop less its mean.
    """

    kind: Kind
    lr: float
    weight_decay: float = 0.0
    eps: float = 1e-8
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    decoupled: bool = False
    corrected: bool = True
    eps_place: Place = "outside"
    first_dampened: bool = False
    averaged: bool = False
    second_start: float = 0.0
    centered: bool = False


def rule_of(record: OptimizerRecord, group: int, unless_told: Rule | None = None) -> Rule | None:
    """The rule that an optimizer of either framework was told to follow; None for an unknown kind.

    Args:
        unless_told: gives the numbers that the record does not hold.
    """
    name = record.type.lower()
    told = hyper_parameters(record, group)
    kind: Kind
    if "adam" in name and "max" not in name and "delta" not in name:
        kind = "adam"
    elif "rmsprop" in name:
        kind = "rmsprop"
    elif name in ("sgd", "momentum"):
        kind = "sgd"
    else:
        return None
    other = unless_told if unless_told is not None and unless_told.kind == kind else Rule(kind, 0.0)
    betas = _betas(told.get("betas"), other.betas)
    if kind == "rmsprop":
        betas = (0.0, _number(told.get("alpha"), other.betas[1] if unless_told else 0.99))
    return Rule(
        kind,
        _number(told.get("lr"), other.lr),
        _number(told.get("weight_decay"), other.weight_decay),
        _number(told.get("eps"), other.eps),
        betas,
        momentum=_number(told.get("momentum"), other.momentum),
        dampening=_number(told.get("dampening"), other.dampening),
        nesterov=_truth(told.get("nesterov"), other.nesterov),
        decoupled=name in ("adamw", "adamweightdecay", "fusedadamw"),
        centered=_truth(told.get("centered"), other.centered),
    )


def change(rule: Rule, values: Sequence[Floats], gradients: Sequence[Floats], lr: float) -> Floats:
    """What the last of some steps in a row adds to a parameter.

    Args:
        values: the parameter before each step.
        gradients: what the optimizer was given in each.
        lr: the learning rate of the last step.
    """
    step = _STEPS[rule.kind]
    direction = step(rule, values, gradients)
    moved = -lr * direction
    if rule.decoupled and rule.weight_decay:
        moved = moved - lr * rule.weight_decay * values[-1]
    return moved


def _given(rule: Rule, value: Floats, gradient: Floats) -> Floats:
    if rule.weight_decay and not rule.decoupled:
        return gradient + rule.weight_decay * value
    return gradient


def _sgd(rule: Rule, values: Sequence[Floats], gradients: Sequence[Floats]) -> Floats:
    buffer = np.zeros_like(values[0])
    direction = buffer
    for number, (value, gradient) in enumerate(zip(values, gradients, strict=True)):
        g = _given(rule, value, gradient)
        if not rule.momentum:
            direction = g
            continue
        share = 1 - rule.momentum if rule.averaged else 1 - rule.dampening
        if number == 0 and not rule.first_dampened and not rule.averaged:
            share = 1.0
        buffer = rule.momentum * buffer + share * g
        direction = g + rule.momentum * buffer if rule.nesterov else buffer
    return direction


def _adam(rule: Rule, values: Sequence[Floats], gradients: Sequence[Floats]) -> Floats:
    first = np.zeros_like(values[0])
    second = np.full_like(values[0], rule.second_start)
    one, two = rule.betas
    for value, gradient in zip(values, gradients, strict=True):
        g = _given(rule, value, gradient)
        first = one * first + (1 - one) * g
        second = two * second + (1 - two) * g * g
    steps = len(values)
    if rule.corrected:
        first = first / (1 - one**steps)
        if rule.eps_place == "uncorrected":
            below = np.sqrt(second) + rule.eps
            return np.asarray(first * math.sqrt(1 - two**steps) / below)
        second = second / (1 - two**steps)
    if rule.eps_place == "inside":
        return np.asarray(_divided(first, np.sqrt(second + rule.eps)))
    return np.asarray(_divided(first, np.sqrt(second) + rule.eps))


def _rmsprop(rule: Rule, values: Sequence[Floats], gradients: Sequence[Floats]) -> Floats:
    second = np.full_like(values[0], rule.second_start)
    mean = np.zeros_like(values[0])
    buffer = np.zeros_like(values[0])
    alpha = rule.betas[1]
    direction = buffer
    for value, gradient in zip(values, gradients, strict=True):
        g = _given(rule, value, gradient)
        second = alpha * second + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        spread = second - mean * mean if rule.centered else second
        inside = rule.eps_place == "inside"
        below = np.sqrt(spread + rule.eps) if inside else np.sqrt(spread) + rule.eps
        direction = _divided(g, below)
        if rule.momentum:
            buffer = rule.momentum * buffer + direction
            direction = buffer
    return direction


_STEPS = {"sgd": _sgd, "adam": _adam, "rmsprop": _rmsprop}


def _divided(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(above / below)


def _number(spelled: Spelled | None, default: float) -> float:
    value: Attribute = spelled.value if spelled is not None else None
    return float(value) if isinstance(value, (int, float)) else default


def _truth(spelled: Spelled | None, default: bool) -> bool:
    return bool(spelled.value) if spelled is not None else default


def _betas(spelled: Spelled | None, default: tuple[float, float]) -> tuple[float, float]:
    value = spelled.value if spelled is not None else None
    if isinstance(value, tuple) and len(value) == 2:
        one, two = value
        if isinstance(one, (int, float)) and isinstance(two, (int, float)):
            return float(one), float(two)
    return default
