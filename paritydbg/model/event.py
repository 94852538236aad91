"""Events: one captured tensor each, its place in the run and its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# What a dump holds of a tensor.
Payload = Literal["values", "sketch"]


class Phase(str, Enum):
    """The part of a training step in which a tensor was seen."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


class Role(str, Enum):
    """What a tensor is to the layer, parameter or step that it belongs to."""

    INPUT = "input"
    OUTPUT = "output"
    GRAD_OUTPUT = "grad_output"
    GRAD_INPUT = "grad_input"
    PARAMETER = "parameter"
    GRAD = "grad"
    GRAD_APPLIED = "grad_applied"
    BUFFER = "buffer"
    STATE = "state"
    LOSS = "loss"
    BATCH = "batch"


GRADIENT_OF = {
    Role.INPUT: Role.GRAD_INPUT,
    Role.OUTPUT: Role.GRAD_OUTPUT,
    Role.PARAMETER: Role.GRAD,
}


@dataclass(frozen=True)
class EventKey:
    """The name of one captured tensor, unique within a dump.

    Attributes:
        step: from 1.
        phase: a parameter or buffer in phase ``forward`` has its value before the step, in phase
            ``update`` its value after the step.
        role: what the tensor is.
        name: the layer's dotted name for layer roles (``""`` is the net itself), the parameter's or
            buffer's dotted name for PARAMETER, GRAD, GRAD_APPLIED and BUFFER, the entry's name for
            BATCH (``x``), STATE (``ema``, ``lr``) and LOSS (``loss``).
        call: the layer's call within the step, from 0; runs on over micro-batches.
        slot: the position in a tuple or the key in a dict, nested ones joined with dots: ``""``
            for a lone tensor, ``0``, ``1.hidden``. For inputs always positions or keyword names.
        micro: the micro-batch within the step, from 0.
        rank: the process within a distributed run, from 0.
    """

    step: int
    phase: Phase
    role: Role
    name: str
    call: int = 0
    slot: str = ""
    micro: int = 0
    rank: int = 0

    @property
    def place(self) -> str:
        """The name with its call: ``block.fc``, ``block.fc#1`` for the second call."""
        name = self.name or "(net)"
        return f"{name}#{self.call}" if self.call else name

    @property
    def gradient(self) -> EventKey | None:
        """The key of its gradient, None for what has none of its own."""
        role = GRADIENT_OF.get(self.role)
        if role is None or self.phase is not Phase.FORWARD:
            return None
        return replace(self, role=role, phase=Phase.BACKWARD)

    def __str__(self) -> str:
        slot = f"[{self.slot}]" if self.slot else ""
        return f"step{self.step}:{self.phase.value}:{self.place}:{self.role.value}{slot}"


@dataclass(frozen=True)
class Values:
    """A tensor's values on the host.

    Attributes:
        array: C-contiguous numpy array, owned by nobody else. bfloat16 is stored as its bits, uint16.
        dtype: the framework-free dtype name: ``float32``, ``bfloat16``, ``int64``, ``bool`` …
    """

    array: NDArray[Any]
    dtype: str

    @staticmethod
    def of(array: NDArray[Any]) -> Values:
        """The values of a numpy array, which is copied so that later in-place writes cannot reach them."""
        # Not ascontiguousarray: it would turn a scalar into shape (1,).
        return Values(np.array(array, order="C", copy=True), str(array.dtype))

    def decoded(self) -> NDArray[Any]:
        """The array in a dtype numpy can calculate with: bfloat16 bits become float32, exactly."""
        return decode(self.array, self.dtype)


def decode(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The array with bfloat16 bits (uint16) widened to float32, everything else as it is."""
    if dtype == "bfloat16" and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


@dataclass(frozen=True)
class Event:
    """One entry of a dump's index; the values stay in the file until they are asked for.

    Attributes:
        key: which tensor.
        order: its number in the order of execution within the dump, from 0.
        shape: of the tensor.
        dtype: framework-free dtype name.
        nbytes: of what is stored: the values, or their sketch.
        digest: equal digests mean equal bytes of the values (dtype and shape included), whatever is
            stored of them.
        payload: what is stored: the values, or a sketch of them (`paritydbg.measure.sketch`).
    """

    key: EventKey
    order: int
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    digest: str
    payload: Payload = "values"

    @property
    def has_values(self) -> bool:
        """Whether the values can be loaded; of a sketch they cannot."""
        return self.payload == "values"
