"""Taps on layers: what comes in and goes out is recorded, then replaced by the reference's values.

Each layer so sees what the reference's layer saw, forward and backward, and its error is its own. How
a tensor is replaced so that gradients still flow is the hook packages' matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.session.forcing import Forcing
from paritydbg.session.nesting import Nesting
from paritydbg.session.recording import Recording

Rearranged = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Layout:
    """How the values of a tensor lie in the dump, where that is not as the framework holds them.

    Attributes:
        shown: from the framework's arrangement to the dump's.
        held: back again.
    """

    shown: Rearranged
    held: Rearranged


class Taps(ABC):
    """The taps of one recorder.

    Args:
        nesting: how the framework's calls nest their tensors.
        recording: where everything goes that comes by.
        forcing: the reference's values.
    """

    def __init__(self, nesting: Nesting, recording: Recording, forcing: Forcing) -> None:
        self._nesting = nesting
        self._recording = recording
        self._forcing = forcing
        self._outputs: list[Any] = []

    def arguments(
        self, name: str, call: int, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call's arguments, each tensor recorded and replaced."""
        return self._nesting.mapped_call(
            arguments, keywords, lambda slot, tensor: self.tap(Role.INPUT, name, call, slot, tensor)
        )

    def output(self, name: str, call: int, output: Any, outermost: bool) -> Any:
        """A layer's output, each tensor recorded and replaced.

        Args:
            outermost: whether no other layer's call goes on: a backward pass through this output is
                led to every tap of the pass.
        """
        done = self._nesting.mapped(
            output, lambda slot, tensor: self.tap(Role.OUTPUT, name, call, slot, tensor)
        )
        return self._joined(done) if outermost else done

    def tap(
        self,
        role: Role,
        name: str,
        call: int,
        slot: str,
        tensor: Any,
        layout: Layout | None = None,
    ) -> Any:
        """Record one tensor, and give what takes its place."""
        recording, clock = self._recording, self._recording.clock
        own = self.values(tensor)
        if own is None:
            return tensor
        values = _shown(own, layout)
        if recording.wants(role, name):
            recording.tensor(Phase.FORWARD, role, name, values, call=call, slot=slot)
        place = (name, call, slot, clock.micro, recording.rank)
        key = EventKey(clock.step, Phase.FORWARD, role, *place)
        given = self._given(key, values.array.shape, layout)
        value = self.copy_of(tensor, own) if given is None else self.like(given, tensor)
        gradient = key.gradient
        wanted = gradient is not None and gradient in self._forcing
        if gradient is None or not self.flows_back(tensor, wanted):
            return value

        def arrived(found: Any) -> Any:
            return self.arrived(gradient, found, layout)

        tapped = self.tapped(tensor, value, arrived, wanted)
        if role is Role.OUTPUT:
            self._outputs.append(tapped)
        return tapped

    def arrived(self, key: EventKey, gradient: Any, layout: Layout | None = None) -> Any:
        """Record a gradient that reached a tap, and give the one that is handed on."""
        recording = self._recording
        recording.clock.gradient_arrives()
        own = self.values(gradient)
        values = None if own is None else _shown(own, layout)
        shape = tuple(gradient.shape) if values is None else values.array.shape
        given = self._given(key, shape, layout)
        # The join calls every tap: where nothing flows, zeros come, and nothing has arrived.
        nothing = given is not None and given.any() and not (values and values.decoded().any())
        if values is not None and not nothing and recording.plan.takes(key.role, key.name):
            recording.tensor(
                Phase.BACKWARD,
                key.role,
                key.name,
                values,
                call=key.call,
                slot=key.slot,
                step=key.step,
                micro=key.micro,
            )
        return gradient if given is None else self.like(given, gradient)

    def parameter_gradient(self, phase: Phase, role: Role, name: str, gradient: Any) -> Any:
        """The reference's gradient of a parameter in place of the net's own, None where it has none."""
        recording = self._recording
        clock = recording.clock
        key = EventKey(clock.step, phase, role, name, micro=clock.micro, rank=recording.rank)
        given = self._forcing.value(key, tuple(gradient.shape))
        return None if given is None else self.like(given, gradient)

    def _given(
        self, key: EventKey, shape: tuple[int, ...], layout: Layout | None
    ) -> NDArray[Any] | None:
        """The reference's values of a tensor as the framework holds them, None where it has none."""
        given = self._forcing.value(key, shape)
        return given if given is None or layout is None else layout.held(given)

    def _joined(self, output: Any) -> Any:
        """The outermost output, through which a backward pass reaches every tap of this pass."""
        outputs, self._outputs = self._outputs, []
        joined = False

        def put(_: str, value: Any) -> Any:
            nonlocal joined
            if joined or not self.leads_back(value):
                return value
            joined = True
            return self.join(value, [one for one in outputs if one is not value])

        return self._nesting.mapped(output, put)

    @abstractmethod
    def values(self, tensor: Any) -> Values | None:
        """A copy of a tensor's values, None where they cannot be read."""

    @abstractmethod
    def like(self, array: NDArray[Any], tensor: Any) -> Any:
        """The array as a tensor of the other's dtype, on its device."""

    @abstractmethod
    def copy_of(self, tensor: Any, values: Values) -> Any:
        """A tensor of the same values that no gradient flows through."""

    @abstractmethod
    def flows_back(self, tensor: Any, wanted: bool) -> bool:
        """Whether a gradient is asked for at a tensor.

        Args:
            wanted: whether the reference has one there.
        """

    @abstractmethod
    def leads_back(self, tensor: Any) -> bool:
        """Whether a backward pass may start at an output."""

    @abstractmethod
    def tapped(self, tensor: Any, value: Any, arrived: Callable[[Any], Any], wanted: bool) -> Any:
        """``value``, through which a gradient flows back to ``tensor`` by way of ``arrived``.

        Args:
            wanted: whether the reference has a gradient there.
        """

    @abstractmethod
    def join(self, first: Any, others: list[Any]) -> Any:
        """``first``, whose backward pass sends zeros to the others, so that their taps are called."""


def _shown(values: Values, layout: Layout | None) -> Values:
    return values if layout is None else Values(layout.shown(values.array), values.dtype)
