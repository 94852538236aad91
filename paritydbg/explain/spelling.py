"""Rows and spellings, the shapes of the attribute table; what the table holds is in `layer_table`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paritydbg.explain.padding import axes_of, per_axis
from paritydbg.explain.reading import (
    UNKNOWN,
    Meaning,
    Reader,
    Writer,
    as_written,
    differ,
    plain,
)
from paritydbg.model.record import Attribute, LayerRecord


@dataclass(frozen=True)
class Spelling:
    """How one framework's layer writes a meaning.

    Attributes:
        argument: the constructor's argument, by which a person is told.
        read: record -> meaning.
        write: meaning -> the argument's value.
        show: record -> the argument's value as it stands, where writing what was read cannot give it.
    """

    argument: str
    read: Reader
    write: Writer = as_written
    show: Callable[[LayerRecord], Attribute] | None = None


Cause = str | Callable[[LayerRecord, LayerRecord, Meaning, Meaning], str]


@dataclass(frozen=True)
class Row:
    """One attribute of some layers.

    Attributes:
        families: the torch classes it belongs to.
        torch, mindspore, mint: its spellings, None where a layer hides it or has none.
        cause: slug, or a function of both records (reference, port) and both meanings.
        changes: as in AttributeDifference.
        differ: True, False or None (cannot be told) for two meanings.
    """

    families: tuple[str, ...]
    torch: Spelling
    mindspore: Spelling | None
    mint: Spelling | None
    cause: Cause
    changes: str = "forward"
    differ: Callable[[Meaning, Meaning], bool | None] = differ


def same_name(name: str) -> Spelling:
    """The spelling of an attribute that is stored as it was given."""
    return Spelling(name, plain(name))


def row(families: str, name: str, cause: Cause, changes: str = "forward", port: str = "") -> Row:
    """An attribute that only its name tells apart; ``port`` is mindspore.nn's name for it."""
    both = same_name(name)
    return Row(tuple(families.split()), both, same_name(port or name), both, cause, changes)


def bounded(name: str, replaced: Attribute, value: Attribute) -> Spelling:
    """A spelling in which one value is another way to say a second one."""

    def read(record: LayerRecord) -> Meaning:
        found = plain(name)(record)
        return value if found == replaced and type(found) is type(replaced) else found

    return Spelling(name, read)


def sizes(name: str, none_means: Attribute = None) -> Spelling:
    """A spelling of a size per spatial axis, one number for all or MindSpore's longer tuples."""

    def read(record: LayerRecord) -> Meaning:
        found = record.attribute(name)
        if found is None and none_means is not None:
            found = record.attribute(str(none_means))
        return per_axis(found, axes_of(record)) or UNKNOWN

    return Spelling(name, read)


def one_minus(name: str) -> Spelling:
    """The spelling of an attribute that the layer keeps as torch does, while its argument is 1 - it."""

    def write(meaning: Meaning, _record: LayerRecord) -> Attribute:
        return round(1 - meaning, 9) if isinstance(meaning, (int, float)) else None

    return Spelling(name, plain(name), write)


def sized_row(families: str, name: str, cause: str, none_means: Attribute = None) -> Row:
    both = sizes(name, none_means)
    return Row(tuple(families.split()), both, both, both, cause)
