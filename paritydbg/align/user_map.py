"""The map file in which a person names pairs that no rule can find."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from paritydbg.errors import UsageError
from paritydbg.weights.rules import Rename

_SECTIONS = ("layers", "parameters", "rename")
_EXAMPLE = "layers: {encoder.fc: body.dense}"


@dataclass(frozen=True)
class UserMap:
    """What the user knows better.

    Attributes:
        layers: (reference's name, port's name) of layers; what lies inside follows by name.
        parameters: likewise of parameters.
        rename: rules from the reference's names to the port's, see `rules.rename_name`.
    """

    layers: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    rename: tuple[Rename, ...] = ()

    def with_rename(self, rules: tuple[Rename, ...]) -> UserMap:
        """The map with further rename rules, which come before its own."""
        return replace(self, rename=(*rules, *self.rename))


def read_user_map(path: str | os.PathLike[str]) -> UserMap:
    """The map in a YAML or TOML file (by its ending; YAML unless ``.toml``).

        layers: {encoder.layer: bert.blocks}
        parameters: {head.scale: head.gamma}
        rename: [[decoder, dec]]

    Raises:
        UsageError: a missing or unreadable file, or entries that are no pairs of names.
    """
    where = os.fspath(path)
    content = _content(where)
    if content is None:
        return UserMap()
    if not isinstance(content, dict):
        raise UsageError(f"{where} holds no table; write e.g. {_EXAMPLE}")
    unknown = [str(key) for key in content if key not in _SECTIONS]
    if unknown:
        raise UsageError(
            f"{where} has the unknown entry {unknown[0]!r}; known are {', '.join(_SECTIONS)}"
        )
    return UserMap(
        _pairs(content.get("layers"), "layers", where),
        _pairs(content.get("parameters"), "parameters", where),
        _rules(content.get("rename"), where),
    )


def _content(where: str) -> object:
    try:
        with open(where, "rb") as stream:
            data = stream.read()
    except FileNotFoundError as error:
        raise UsageError(f"the map file {where} does not exist; write e.g. {_EXAMPLE}") from error
    except OSError as error:
        raise UsageError(f"the map file {where} cannot be read ({error.strerror})") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is no UTF-8 text; save it as UTF-8") from error
    return _toml(text, where) if where.lower().endswith(".toml") else _yaml(text, where)


def _toml(text: str, where: str) -> object:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is no TOML: {error}") from error


def _yaml(text: str, where: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{where} is no YAML: {reason}") from error


def _pairs(entry: object, section: str, where: str) -> tuple[tuple[str, str], ...]:
    if entry is None:
        return ()
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: {section} must map the reference's names to the port's")
    for old, new in entry.items():
        if not isinstance(old, str) or not isinstance(new, str):
            raise UsageError(f"{where}: {section} entry {old!r}: {new!r} is no pair of names")
    return tuple((str(old), str(new)) for old, new in entry.items())


def _rules(entry: object, where: str) -> tuple[Rename, ...]:
    if entry is None:
        return ()
    if isinstance(entry, Mapping):
        return _pairs(entry, "rename", where)
    if not isinstance(entry, list):
        raise UsageError(f"{where}: rename must be a list of [old, new]")
    rules: list[Rename] = []
    for rule in entry:
        two_names = isinstance(rule, list) and [type(part) for part in rule] == [str, str]
        if not two_names or not rule[0]:
            raise UsageError(f"{where}: the rename rule {rule!r} is not [old, new]")
        rules.append((rule[0], rule[1]))
    return tuple(rules)
