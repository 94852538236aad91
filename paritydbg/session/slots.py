"""Arguments of a call from the slots of its tensors; the other way round is in `nesting`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def arguments_of(tensors: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and named arguments: slots ``0``, ``1.0``, ``1.1`` and ``mask`` as ``(a, (b, c)), {mask}``.

    A position that had no tensor is None; trailing ones are left out.
    """
    positional: dict[int, Any] = {}
    named: dict[str, Any] = {}
    for slot, tensor in tensors.items():
        head, _, rest = slot.partition(".")
        target: dict[Any, Any] = positional if head.isdigit() else named
        key: Any = int(head) if head.isdigit() else head
        if not rest:
            target[key] = tensor
        else:
            target.setdefault(key, {})[rest] = tensor
    last = max(positional, default=-1)
    return (
        tuple(_whole(positional.get(at)) for at in range(last + 1)),
        {key: _whole(value) for key, value in named.items()},
    )


def _whole(value: Any) -> Any:
    """A tensor itself, or the tuple or dict of what lies deeper."""
    if not isinstance(value, dict):
        return value
    positional, named = arguments_of(value)
    return named if named and not positional else positional
