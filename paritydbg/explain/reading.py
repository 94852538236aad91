"""How a layer's record is read: whose spelling it follows, and when two values differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Literal, Union

from paritydbg.apimap.lookup import family
from paritydbg.model.record import Attribute, LayerRecord

if TYPE_CHECKING:
    from paritydbg.explain.padding import SamePadding

# Whose constructor arguments a layer was built with; "own" is a class of the person's.
Flavour = Literal["torch", "mindspore", "mint", "own"]


class Unknown(Enum):
    """The value of what a record does not tell."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
Meaning = Union[Attribute, "SamePadding", Unknown]
Reader = Callable[[LayerRecord], Meaning]
Writer = Callable[[Meaning, LayerRecord], Attribute]

# Rates and epsilons pass through float32 in both frameworks.
_RELATIVE = 1e-6


def flavour_of(record: LayerRecord) -> Flavour:
    """Which spelling of attributes the layer follows."""
    package = record.api.partition(".")[0]
    if package == "torch":
        return "torch"
    if package != "mindspore":
        return "own"
    mint = record.api.startswith("mindspore.mint.") or record.type.endswith("Ext")
    return "mint" if mint else "mindspore"


def family_of(record: LayerRecord) -> str:
    """The torch class that the layer stands for, ``""`` for a person's own class."""
    return "" if flavour_of(record) == "own" else family(record.api) or family(record.type)


def plain(name: str) -> Reader:
    """A reader of the attribute of that name as it is."""

    def read(record: LayerRecord) -> Meaning:
        return dict(record.attributes).get(name, UNKNOWN)

    return read


def as_written(meaning: Meaning, _record: LayerRecord) -> Attribute:
    """The meaning itself, where it is an attribute's value."""
    if isinstance(meaning, (str, int, float, bool, tuple)):
        return meaning
    return None


def differ(left: Meaning, right: Meaning) -> bool | None:
    """Whether two values mean something else; None where they cannot be compared."""
    if left is UNKNOWN or right is UNKNOWN:
        return None
    if isinstance(left, bool) or isinstance(right, bool):
        both = isinstance(left, (bool, int, float)) and isinstance(right, (bool, int, float))
        return bool(left) != bool(right) if both else None
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return not math.isclose(left, right, rel_tol=_RELATIVE, abs_tol=1e-30)
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() != right.lower()
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            return True
        parts = [differ(a, b) for a, b in zip(left, right, strict=True)]
        return True if True in parts else None if None in parts else False
    if left is None and right is None:
        return False
    return None
