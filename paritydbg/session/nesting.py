"""Tensors in nested arguments and results: where each lies, and the same nesting with others in place."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Put = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Nesting:
    """How a framework's calls nest their tensors; slots are positions, keys and fields joined with dots.

    Attributes:
        is_tensor: tells what is taken as a whole.
        records: whether dataclass-like results are looked into.
    """

    is_tensor: Callable[[object], bool]
    records: bool = False

    def found(self, value: object, slot: str = "") -> Iterator[tuple[str, Any]]:
        """Every tensor in nested tuples, lists, dicts and, where asked for, records, with its slot."""
        if self.is_tensor(value):
            yield slot, value
            return
        for key, entry in self._entries(value) or ():
            yield from self.found(entry, _joined(slot, key))

    def found_in_call(
        self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        """Every tensor among a call's arguments; slots are positions or keyword names."""
        for position, value in enumerate(arguments):
            yield from self.found(value, str(position))
        for name, value in keywords.items():
            yield from self.found(value, name)

    def mapped(self, value: Any, put: Put, slot: str = "") -> Any:
        """The same nesting with every tensor replaced by ``put(slot, tensor)``."""
        if self.is_tensor(value):
            return put(slot, value)
        entries = self._entries(value)
        if entries is None:
            return value
        return _rebuilt(value, [self.mapped(e, put, _joined(slot, key)) for key, e in entries])

    def mapped_call(
        self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], put: Put
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call's arguments with every tensor replaced."""
        return (
            tuple(self.mapped(value, put, str(place)) for place, value in enumerate(arguments)),
            {name: self.mapped(value, put, name) for name, value in keywords.items()},
        )

    def _entries(self, value: Any) -> list[tuple[str, Any]] | None:
        """Names and entries of a container in its own order, None for anything else."""
        if isinstance(value, Mapping):
            return [(str(key), entry) for key, entry in value.items()]
        if isinstance(value, (tuple, list)):
            names: Sequence[object] = getattr(value, "_fields", None) or range(len(value))
            return [(str(name), entry) for name, entry in zip(names, value, strict=True)]
        if self.records and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
            return [(name, getattr(value, name)) for name in value.__dataclass_fields__]
        return None


def _rebuilt(value: Any, entries: Sequence[Any]) -> Any:
    """A container like the given one, with other entries."""
    if isinstance(value, (tuple, list)):
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    changed = copy.copy(value)
    if isinstance(value, Mapping):
        for key, entry in zip(value, entries, strict=True):
            changed[key] = entry
    else:
        for key, entry in zip(value.__dataclass_fields__, entries, strict=True):
            # A frozen one as well: the copy is nobody else's yet.
            object.__setattr__(changed, key, entry)
    return changed


def _joined(slot: str, key: str) -> str:
    return f"{slot}.{key}" if slot else key
