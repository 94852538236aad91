"""Causes in an activation's own backward: what its gradient was multiplied by, told by the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from paritydbg.explain.causes.activations import erf, sigmoid
from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.site import LEFT, gap_of
from paritydbg.explain.context import Context, Floats, Sides, layer_part
from paritydbg.model.event import Role
from paritydbg.model.finding import Cause, Finding


@dataclass(frozen=True)
class GradientSite:
    """A layer's backward in numbers: the gradient that arrives and the forward input.

    Attributes:
        gap: ‖port - reference‖ of the gradient that goes on.
    """

    given: Sides
    x: Sides
    gap: float


def gradient_site(finding: Finding, context: Context, sides: Sides) -> GradientSite | None:
    """The layer whose gradient towards its input the finding is about; None where it is none."""
    evidence = finding.evidence
    if evidence is None or finding.place.startswith(("before ", "after ")):
        return None
    key = evidence.pair.first.key
    name, call = layer_part(finding.place), _call(finding.place)
    if key.role is Role.GRAD_INPUT and key.name != name:
        return None
    if key.role not in (Role.GRAD_INPUT, Role.GRAD_OUTPUT):
        return None
    # The gradient of what was handed to a single layer is seen where the tensor was made.
    given = _at(context, name, Role.GRAD_OUTPUT, key.step, call)
    x = _at(context, name, Role.INPUT, key.step, call)
    gap = gap_of(sides)
    if given is None or x is None or not gap:
        return None
    if not given.port.shape == x.port.shape == sides.port.shape:
        return None
    return GradientSite(given, x, gap)


def derivative_causes(finding: Finding, context: Context, sides: Sides) -> Iterable[Cause]:
    """Of a layer that acts on single elements: the derivative that each side used."""
    found = gradient_site(finding, context, sides)
    if found is None:
        return
    mine = _name(sides.reference, found.given.reference, found.x.reference, found.gap)
    yours = _name(sides.port, found.given.port, found.x.port, found.gap)
    if mine is None:
        return
    if yours is not None and yours[0] == mine[0]:
        return
    told = yours[0] if yours is not None else "nothing that is known"
    left = max(mine[1], yours[1] if yours is not None else 0.0)
    clamped = yours is not None and {mine[0], yours[0]} <= set(_CLAMPS)
    yield Cause(
        "clamp-gradient" if clamped else "custom-bprop-wrong",
        f"the reference multiplies the gradient by {mine[0]}, the port by {told}: its bprop is "
        "not the derivative of what it computes forwards",
        f"recomputed from the layer's input and the gradient that arrives "
        f"({percent(left)} of the difference left)",
        round((0.96 if yours is not None else 0.85) - 0.5 * left, 3),
    )


def _call(place: str) -> int:
    number = place.rpartition("#")[2]
    return int(number) if "#" in place and number.isdigit() else 0


def _at(context: Context, name: str, role: Role, step: int, call: int) -> Sides | None:
    """Both sides' tensor of a call; the reference's for both where the port's hooks saw none."""
    for comparison in context.comparisons_of(name, role, step):
        if comparison.pair.first.key.call == call:
            return context.sides(comparison.pair)
    for event in context.reference.events:
        key = event.key
        if (key.name, key.role, key.step, key.call) == (name, role, step, call):
            values = context.reference_event(event)
            # What arrives here agrees: that is what makes the place the origin.
            return None if values is None else Sides(values, values)
    return None


def _name(wanted: Floats, given: Floats, x: Floats, gap: float) -> tuple[str, float] | None:
    """The derivative that leads from the gradient that arrives to the one that goes on."""
    found: tuple[str, float] | None = None
    for words, function in _DERIVATIVES.items():
        left = float(np.linalg.norm(given * function(x) - wanted)) / gap
        if left <= LEFT and (found is None or left < 0.8 * found[1]):
            found = words, left
    return found


def _normal(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + erf(x / math.sqrt(2))))


def _density(x: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


def _tanh_form(x: Floats) -> Floats:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    tanh = np.tanh(inner)
    return np.asarray(0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * slope)


def _silu(x: Floats) -> Floats:
    s = sigmoid(x)
    return np.asarray(s + x * s * (1 - s))


def _tanh(x: Floats) -> Floats:
    return np.asarray(1 - np.tanh(x) ** 2, np.float64)


def _ones(x: Floats) -> Floats:
    return np.ones_like(x)


def _inside(low: float, high: float) -> Callable[[Floats], Floats]:
    return lambda x: ((x > low) & (x < high)).astype(np.float64)


def _stepped(slope: float) -> Callable[[Floats], Floats]:
    return lambda x: np.where(x > 0, 1.0, slope)


_RELU6 = "1 between 0 and 6"
_HARDTANH = "1 between -1 and 1"
_RELU = "1 where the input is positive"
_CLAMPS = (_RELU6, _HARDTANH, "1 everywhere")
_DERIVATIVES: dict[str, Callable[[Floats], Floats]] = {
    "1 everywhere": _ones,
    _RELU: _stepped(0.0),
    "1 where the input is at least 0": lambda x: (x >= 0).astype(np.float64),
    "LeakyReLU's derivative of slope 0.01": _stepped(0.01),
    "LeakyReLU's derivative of slope 0.2": _stepped(0.2),
    "GELU's derivative": lambda x: _normal(x) + x * _density(x),
    "Φ(x) alone, GELU's derivative without x·φ(x)": _normal,
    "the tanh GELU's derivative": _tanh_form,
    "SiLU's derivative": _silu,
    "σ(x) alone, SiLU's derivative without x·σ'(x)": sigmoid,
    "tanh's derivative": _tanh,
    "sigmoid's derivative": lambda x: sigmoid(x) * (1 - sigmoid(x)),
    _RELU6: _inside(0.0, 6.0),
    _HARDTANH: _inside(-1.0, 1.0),
}
