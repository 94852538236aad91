"""How the reference's calls lay in one another: parents, siblings, in order of execution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from paritydbg.model.event import Event, EventKey, Phase, Role

# One pass's part of a step: what may flow into one another directly.
Moment = tuple[int, int, int]
CallId = tuple[int, int, str, int]


@dataclass
class CallNode:
    """One call of a layer; ``parent`` is None for a net that was called from outside.

    Attributes:
        inside: direct children in order of execution.
        inputs, outputs, grad_outputs, grad_inputs: its events.
        closed: order of its last forward event.
    """

    name: str
    number: int
    moment: Moment
    parent: CallNode | None = None
    inside: list[CallNode] = field(default_factory=list)
    inputs: list[Event] = field(default_factory=list)
    outputs: list[Event] = field(default_factory=list)
    grad_outputs: list[Event] = field(default_factory=list)
    grad_inputs: list[Event] = field(default_factory=list)
    closed: int = -1

    @property
    def siblings(self) -> list[CallNode]:
        """The calls beside it, itself included."""
        return self.parent.inside if self.parent is not None else [self]


def call_id(key: EventKey) -> CallId:
    """What tells one call from another."""
    return key.step, key.rank, key.name, key.call


def build_calls(events: Iterable[Event]) -> dict[CallId, CallNode]:
    """All calls by id, nested as they ran.

    A call opens with its first input and closes with its last output. One whose input was no tensor
    takes in what ran since under its name; one without an output (its hooks cannot tell the end)
    holds nothing.
    """
    ordered = sorted(events, key=lambda event: event.order)
    calls: dict[CallId, CallNode] = {}
    outputs_left: dict[CallId, int] = {}
    for event in ordered:
        if event.key.role in _LISTS:
            node = calls.setdefault(
                call_id(event.key),
                CallNode(event.key.name, event.key.call, _moment(event.key)),
            )
            getattr(node, _LISTS[event.key.role]).append(event)
            if event.key.role is Role.OUTPUT:
                identity = call_id(event.key)
                outputs_left[identity] = outputs_left.get(identity, 0) + 1
    _nest(ordered, calls, outputs_left)
    return calls


_LISTS = {
    Role.INPUT: "inputs",
    Role.OUTPUT: "outputs",
    Role.GRAD_OUTPUT: "grad_outputs",
    Role.GRAD_INPUT: "grad_inputs",
}


def _nest(
    ordered: list[Event], calls: dict[CallId, CallNode], outputs_left: dict[CallId, int]
) -> None:
    stacks: dict[Moment, list[CallNode]] = {}
    tops: dict[Moment, list[CallNode]] = {}
    opened: set[CallId] = set()
    for event in ordered:
        if event.key.phase is not Phase.FORWARD or event.key.role not in _LISTS:
            continue
        identity = call_id(event.key)
        node = calls[identity]
        stack = stacks.setdefault(node.moment, [])
        top = tops.setdefault(node.moment, [])
        node.closed = event.order
        if identity not in opened:
            opened.add(identity)
            if event.key.role is Role.OUTPUT:
                _adopt(node, stack[-1].inside if stack else top)
            _place(node, stack, top)
            if event.key.role is Role.INPUT and outputs_left.get(identity):
                stack.append(node)
        if event.key.role is Role.OUTPUT:
            outputs_left[identity] -= 1
            if not outputs_left[identity] and node in stack:
                del stack[stack.index(node) :]


def _place(node: CallNode, stack: list[CallNode], top: list[CallNode]) -> None:
    if stack:
        node.parent = stack[-1]
        stack[-1].inside.append(node)
    else:
        top.append(node)


def _adopt(node: CallNode, siblings: list[CallNode]) -> None:
    """Take in the calls just before that bear the node's name as their first part."""
    prefix = f"{node.name}." if node.name else ""
    start = len(siblings)
    while start and siblings[start - 1].name.startswith(prefix):
        start -= 1
    node.inside = siblings[start:]
    del siblings[start:]
    for child in node.inside:
        child.parent = node


def _moment(key: EventKey) -> Moment:
    return key.step, key.rank, key.micro
