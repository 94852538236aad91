"""The values of the mapping tables: one torch API and what stands for it; reading is in `tables`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What happened when the API was given the torch API's inputs on CPU.
Ran = Literal["matches", "differs", "no-kernel", "not-tried"]


@dataclass(frozen=True)
class DefaultDifference:
    """A parameter whose default is another one in MindSpore; ``<required>`` where there is none."""

    torch_parameter: str
    torch_default: str
    mindspore_parameter: str
    mindspore_default: str

    def __str__(self) -> str:
        return (
            f"{self.mindspore_parameter} defaults to {self.mindspore_default}, "
            f"torch's {self.torch_parameter} to {self.torch_default}"
        )


@dataclass(frozen=True)
class Alternative:
    """A MindSpore API for the same job.

    Attributes:
        api: full public name.
        ran: what happened on CPU.
        problem: what was wrong where it ran and differed: ``value-diff``, ``call-error`` …
        primary: the one that the public mapping names first.
        defaults: whose default differs from torch's.
    """

    api: str
    ran: Ran = "not-tried"
    problem: str = ""
    primary: bool = False
    defaults: tuple[DefaultDifference, ...] = ()


@dataclass(frozen=True)
class ParameterPair:
    """A torch parameter and its counterpart, either ``""`` where the other side has none."""

    mindspore_api: str
    torch_parameter: str
    mindspore_parameter: str
    relation: str
    source: str


@dataclass(frozen=True)
class Convention:
    """A parameter that must be converted, or a default that changes numbers.

    Attributes:
        affects: what goes wrong without it: ``forward``, ``running stats``, ``update`` …
        verified: whether it was run on CPU.
        before, after: relative difference without and with the conversion, or what was seen instead.
    """

    mindspore_api: str
    torch_parameter: str
    torch_default: str
    mindspore_parameter: str
    mindspore_default: str
    conversion: str
    affects: str
    verified: bool
    before: str
    after: str
    note: str = ""


@dataclass(frozen=True)
class ApiEntry:
    """One torch API and everything known about its counterparts.

    Attributes:
        torch_api: full public name.
        mindspore_api: what the public mapping names first, ``""`` where nothing was found by name.
        kind: module, function, tensor method, optimizer …
        relation: consistent, default-difference, no-equivalent …; measured where it could be.
        alternatives: every MindSpore API for the job, the named one included, best on CPU first.
        renamed: (torch parameter, MindSpore parameter) of the named one.
        missing, extra: parameters that only torch has, that only MindSpore has.
        parameters, conventions: of the named one and of its alternatives.
        dtypes: result dtypes that differ, in words.
        note: a remark.
        source: public documentation page by branch, or how the row came about.
    """

    torch_api: str
    mindspore_api: str
    kind: str
    relation: str
    alternatives: tuple[Alternative, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    parameters: tuple[ParameterPair, ...] = ()
    conventions: tuple[Convention, ...] = ()
    dtypes: str = ""
    note: str = ""
    source: str = ""

    def alternative(self, mindspore_api: str) -> Alternative | None:
        """The alternative of that full name, or None."""
        return next((a for a in self.alternatives if a.api == mindspore_api), None)
