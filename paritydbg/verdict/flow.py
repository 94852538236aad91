"""What went into each of the reference's events, as far as calls and equal bytes tell.

Sources may be more than the truth: a difference is inherited from any of them, and the first origin
cannot hide behind what came before it, for that would be an origin itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.record import RunRecord
from paritydbg.verdict.calls import CallNode, Moment, build_calls, call_id
from paritydbg.verdict.event_index import EventIndex

Sources = Mapping[Event, tuple[Event, ...]]


class Flow:
    """Sources of every event of a run.

    Attributes:
        calls: the calls by id.
        sources: for each event the events that flow into it; empty where it comes from outside.
    """

    def __init__(self, run: RunRecord, events: Iterable[Event]) -> None:
        self._events = sorted(events, key=lambda event: event.order)
        self._index = EventIndex(run, self._events)
        self._types = {layer.name: layer.type for layer in run.layers}
        self.calls = build_calls(self._events)
        self._made: dict[tuple[Moment, Phase, str], Event] = {}
        self.sources: dict[Event, tuple[Event, ...]] = {}
        for event in self._events:
            self.sources[event] = _unique(self._of(event), event)
            self._note(event)
        self._join_same_gradients()

    def call(self, event: Event) -> CallNode | None:
        """The call that a layer's event belongs to."""
        return self.calls.get(call_id(event.key))

    def calls_of(self, layer: str, step: int, rank: int) -> list[CallNode]:
        """All calls of a layer in a step."""
        return self._index.calls_of(self.calls, layer, step, rank)

    def calls_behind(self, layer: str, step: int, rank: int) -> list[CallNode]:
        """The calls that a gradient of a step comes from: of the step, else of the one before it.

        Two nets that train each other: what one made in its step goes backward in the other's.
        """
        return self.calls_of(layer, step, rank) or self.calls_of(layer, step - 1, rank)

    def passages(self, gradient: Event) -> Iterator[tuple[Event, Event, Event]]:
        """What a gradient went through, element by element, on its way back: x, y made of it, and dy.

        For the gradient of a layer's input: that layer's input, outputs and their gradients. For the
        gradient of an output: the output, the inputs that glue made of it, and their gradients.
        """
        call = self.call(gradient)
        if call is None:
            return
        if gradient.key.role is Role.GRAD_INPUT:
            for x in _at(call.inputs, gradient):
                for y in call.outputs:
                    yield from ((x, y, dy) for dy in _at(call.grad_outputs, y))
        elif gradient.key.role is Role.GRAD_OUTPUT:
            for x in _at(call.outputs, gradient):
                for dy in self.sources[gradient]:
                    user = self.call(dy) if dy.key.role is Role.GRAD_INPUT else None
                    if user is not None:
                        yield from ((x, y, dy) for y in _at(user.inputs, dy))

    def owner(self, parameter: str) -> str:
        """The layer that owns a parameter or buffer."""
        return self._index.owner(parameter)

    def is_chain(self, layer: str) -> bool:
        """Whether a layer only hands on from child to child, without glue of its own."""
        return self._types.get(layer, "") in _CHAINS

    def normalises(self, layer: str) -> bool:
        """Whether a layer's type says that it subtracts a mean or divides by a spread."""
        return "norm" in self._types.get(layer, "").lower()

    def recurs(self, layer: str) -> bool:
        """Whether a layer is a recurrent one, which may know the lengths of its sequences."""
        return self._types.get(layer, "") in _RECURRENT

    def _of(self, event: Event) -> Iterable[Event]:
        by_role: dict[Role, Callable[[Event], Iterable[Event]]] = {
            Role.INPUT: self._of_input,
            Role.OUTPUT: self._of_output,
            Role.GRAD_OUTPUT: self._of_grad_output,
            Role.GRAD_INPUT: self._of_grad_input,
            Role.GRAD: self._of_grad,
            Role.GRAD_APPLIED: self._of_applied,
            Role.PARAMETER: self._of_tensor,
            Role.BUFFER: self._of_tensor,
            Role.LOSS: self._of_loss,
        }
        of_role = by_role.get(event.key.role)
        return of_role(event) if of_role is not None else ()

    def _note(self, event: Event) -> None:
        key = event.key
        if key.role in _FLOWING and event.nbytes:
            self._made[(key.step, key.rank, key.micro), key.phase, event.digest] = event

    def _same(self, event: Event) -> Event | None:
        """The last earlier tensor of this pass with the same bytes: the very same, handed on."""
        key = event.key
        return self._made.get(((key.step, key.rank, key.micro), key.phase, event.digest))

    def _join_same_gradients(self) -> None:
        """Let gradients of equal bytes share their sources: they are one tensor seen at several layers.

        Hooks on one tensor fire in the order in which they were set, which says nothing about flow.
        """
        groups: dict[tuple[Moment, str], list[Event]] = {}
        for event in self._events:
            key = event.key
            if key.role in (Role.GRAD_OUTPUT, Role.GRAD_INPUT):
                moment = key.step, key.rank, key.micro
                groups.setdefault((moment, event.digest), []).append(event)
        for members in groups.values():
            first, *others = members
            inside = set(members)
            union = [s for member in members for s in self.sources[member] if s not in inside]
            self.sources[first] = _unique(union, first)
            for other in others:
                self.sources[other] = (first,)

    def _of_input(self, event: Event) -> Iterable[Event]:
        same = self._same(event)
        if same is not None:
            return (same,)
        call = self.calls[call_id(event.key)]
        return (*self._before(call, event.order), *self._glue_parameters(call))

    def _of_output(self, event: Event) -> Iterable[Event]:
        call = self.calls[call_id(event.key)]
        if call.inside:
            same = self._same(event)
            if same is not None and same.key.role is Role.OUTPUT:
                return (same,)
        found = [*call.inputs, *self._index.held(call.name, event.key.step, event.key.rank)]
        for child in call.inside:
            found += child.outputs
        if not call.inputs and not call.inside:
            found += self._before(call, event.order)
        return found

    def _of_grad_output(self, event: Event) -> Iterable[Event]:
        call = self.calls[call_id(event.key)]
        # The derivative of what comes after is taken at the value that went out.
        return (*call.outputs, *self._behind(call))

    def _of_grad_input(self, event: Event) -> Iterable[Event]:
        call = self.calls[call_id(event.key)]
        found = [*call.grad_outputs, *call.inputs, *call.outputs]
        found += self._index.held(call.name, event.key.step, event.key.rank)
        for child in call.inside:
            found += [*child.grad_inputs, *child.grad_outputs]
        # Its gradient is the sum over all users of the tensor, of which there may be some outside.
        return (*found, *self._behind(call))

    def _of_grad(self, event: Event) -> Iterable[Event]:
        key = event.key
        owner = self._index.owner(key.name)
        found: list[Event] = []
        for call in self.calls_behind(owner, key.step, key.rank):
            if call.moment[2] != key.micro:
                continue
            found += [*call.inputs, *call.outputs, *call.grad_outputs]
            for child in call.inside:
                found += [*child.grad_inputs, *child.grad_outputs, *child.outputs]
        return found or self._index.losses(key.step, key.rank)

    def _of_applied(self, event: Event) -> Iterable[Event]:
        # Clipping by the global norm joins all gradients.
        key = event.key
        return self._index.gradients(key.step, key.rank) or self._index.losses(key.step, key.rank)

    def _of_tensor(self, event: Event) -> Iterable[Event]:
        key = event.key
        if key.phase is Phase.FORWARD:
            return self._index.after(key.role, key.name, key.step - 1, key.rank)
        found = list(self._index.before(key.role, key.name, key.step, key.rank))
        if key.role is Role.PARAMETER:
            found += self._index.given(key.name, key.step, key.rank)
        else:
            for call in self.calls_of(self._index.owner(key.name), key.step, key.rank):
                found += [*call.inputs, *call.outputs]
        return found

    def _of_loss(self, event: Event) -> Iterable[Event]:
        key = event.key
        found = [e for e in self._index.batch(key.step, key.rank) if e.key.micro == key.micro]
        for call in self.calls.values():
            if call.parent is None and call.moment == (key.step, key.rank, key.micro):
                found += call.outputs
        return found

    def _before(self, call: CallNode, order: int) -> list[Event]:
        """What its parent had at hand: its own inputs, and what its children gave so far."""
        found: list[Event] = []
        if call.parent is None:
            found += [
                e
                for e in self._index.batch(call.moment[0], call.moment[1])
                if e.key.micro == call.moment[2]
            ]
            found += [
                output
                for other in self.calls.values()
                if other.parent is None and other.moment == call.moment
                for output in other.outputs
                if output.order < order
            ]
            return found
        found += call.parent.inputs
        if not call.parent.inputs:
            found += self._before(call.parent, order)
        for sibling in call.parent.inside:
            found += [output for output in sibling.outputs if output.order < order]
        return found

    def _glue_parameters(self, call: CallNode) -> list[Event]:
        """Parameters that the layers around a call own themselves: their glue may use them."""
        found: list[Event] = []
        parent = call.parent
        while parent is not None:
            found += self._index.held(parent.name, call.moment[0], call.moment[1])
            parent = parent.parent
        return found

    def _behind(self, call: CallNode) -> list[Event]:
        """Where a call's gradient comes from: what ran after it beside it, or what holds it."""
        found: list[Event] = []
        if call.parent is not None:
            later = call.parent.inside[call.parent.inside.index(call) + 1 :]
            for sibling in later:
                found += [*sibling.grad_inputs, *sibling.inputs, *sibling.outputs]
            found += call.parent.grad_outputs
            if not call.parent.grad_outputs:
                found += self._behind(call.parent)
            return found
        for other in self.calls.values():
            if other.parent is None and other.moment == call.moment and other.closed > call.closed:
                found += other.grad_inputs
        return [*found, *self._index.losses(call.moment[0], call.moment[1])]


_RECURRENT = ("LSTM", "GRU", "RNN")
_CHAINS = ("Sequential", "SequentialCell")
_FLOWING = (Role.BATCH, Role.INPUT, Role.OUTPUT)


def _at(events: Iterable[Event], like: Event) -> Iterator[Event]:
    """Those in the same slot and of the same shape."""
    return (e for e in events if e.key.slot == like.key.slot and e.shape == like.shape)


def _unique(events: Iterable[Event], but: Event) -> tuple[Event, ...]:
    return tuple(dict.fromkeys(event for event in events if event != but))
