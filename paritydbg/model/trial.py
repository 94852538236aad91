"""Trials: one call of a framework's layer or optimizer on given tensors, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from paritydbg.model.record import Attribute, LayerRecord, ParameterRecord

Array = NDArray[Any]


@dataclass(frozen=True)
class Call:
    """A constructor's call, of plain values alone: what a line of code says, without running it.

    Attributes:
        api: full public name: ``mindspore.nn.LayerNorm``.
        arguments: by position.
        keywords: by name.
        of_parameters: whether the first argument is the list of parameters (an optimizer).
    """

    api: str
    arguments: tuple[Attribute, ...] = ()
    keywords: tuple[tuple[str, Attribute], ...] = ()
    of_parameters: bool = False


@dataclass(frozen=True)
class Trial:
    """One layer or optimizer on given tensors.

    Attributes:
        call: what is built.
        layer: the reference's layer, its name ``""``; None for an optimizer.
        parameters: of the reference's layer, or those that the optimizer moves.
        values: parameters and buffers before, by the reference's names.
        inputs: slot (``0``, ``1.0``, a keyword) -> tensor.
        grad_outputs: slot -> gradient of the output's tensor (``""`` of a lone one); empty for a forward
            pass alone.
        gradients: what the optimizer is given, by the reference's names.
        training: the train/eval flag.
    """

    call: Call
    layer: LayerRecord | None = None
    parameters: tuple[ParameterRecord, ...] = ()
    values: Mapping[str, Array] = field(default_factory=dict)
    inputs: Mapping[str, Array] = field(default_factory=dict)
    grad_outputs: Mapping[str, Array] = field(default_factory=dict)
    gradients: Mapping[str, Array] = field(default_factory=dict)
    training: bool = True


@dataclass(frozen=True)
class TrialResult:
    """What a trial gave, in the reference's names and, for parameters, its layout.

    Attributes:
        outputs: slot -> tensor, ``""`` for a lone one.
        grad_inputs: slot -> gradient.
        gradients: parameter -> gradient.
        values: parameters and buffers afterwards.
        error: why it did not run, in a line; ``""`` where it did.
    """

    outputs: Mapping[str, Array] = field(default_factory=dict)
    grad_inputs: Mapping[str, Array] = field(default_factory=dict)
    gradients: Mapping[str, Array] = field(default_factory=dict)
    values: Mapping[str, Array] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class TrialOutcome:
    """How a candidate did on the captured tensors.

    Attributes:
        works: whether it gave the reference's values, None where it could not be told.
        forward, backward, state: relative errors (‖x - r‖ / ‖r‖) of outputs, of gradients, and of
            running statistics or updated parameters; None where not compared.
        allowed: the largest relative error that still counts as the reference's value.
        words: what a reader must know: why it was not tried, what was drawn, what was left out.
    """

    works: bool | None
    forward: float | None = None
    backward: float | None = None
    state: float | None = None
    allowed: float = 0.0
    words: str = ""
