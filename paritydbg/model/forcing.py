"""What a forced replay gives to a port: which of the reference's values stands in for which tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paritydbg.model.event import EventKey
from paritydbg.model.transform import Transform


@dataclass(frozen=True)
class Given:
    """The reference's values for one tensor of the port's.

    Attributes:
        orders: the reference's events of the group, by their numbers of execution.
        transform: leads from them to the port's layout.
        position: which of the transform's arrays it is.
    """

    orders: tuple[int, ...]
    transform: Transform
    position: int = 0


@dataclass(frozen=True)
class ForcingPlan:
    """A whole forced replay.

    Attributes:
        reference: path of the dump that the values come from.
        given: by the port's event. Gradients of inputs are there only where the reference recorded
            each layer's own share; a plain capture sees the sum over all users of a tensor.
    """

    reference: str
    given: Mapping[EventKey, Given] = field(default_factory=dict)
