"""A finding ready to be handed over: one layer or optimizer of both frameworks on the same tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from paritydbg.model.finding import Finding
from paritydbg.model.record import Environment
from paritydbg.model.trial import Trial, TrialResult

Array = NDArray[Any]


@dataclass(frozen=True)
class HandoverSide:
    """One framework's half.

    Attributes:
        environment: versions and device of its run.
        code: the line that builds the layer, or the optimizer on ``parameters``.
        values: parameters and buffers before, by its own names and layout.
        gradients: what its optimizer is given, likewise; empty for a layer.
        expected: what the other side gives, by its own names and layout.
        own: what it gave itself when the reproduction was made.
    """

    environment: Environment
    code: str
    values: Mapping[str, Array]
    gradients: Mapping[str, Array]
    expected: TrialResult
    own: TrialResult


@dataclass(frozen=True)
class Handover:
    """A reproduction of one finding.

    Attributes:
        finding: what is reproduced.
        trial: inputs, gradients of outputs and the mode, shared by both sides.
        reference, port: the halves.
        allowed: relative error up to which both agree, but for gradients.
        errors: (what, relative error, allowed) of everything compared, the port against the reference.
        anonymous: whether inputs and weights were drawn, and names left out.
    """

    finding: Finding
    trial: Trial
    reference: HandoverSide
    port: HandoverSide
    allowed: float
    errors: tuple[tuple[str, float, float], ...]
    anonymous: bool = False
