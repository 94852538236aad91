"""The dump's layout: names inside the file, its version, and records as JSON lines and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from paritydbg.model.event import EventKey, Phase, Role
from paritydbg.model.record import (
    Environment,
    LayerRecord,
    NoiseRecord,
    OptimizerRecord,
    ParameterRecord,
    SkippedRecord,
    Taken,
)

FORMAT = "paritydbg-dump"
# Written where every event is a tensor's values; sketches came with the second.
PLAIN_VERSION = 1
VERSION = 2
# Bytes of all tensors, one after the other.
ARENA = "arena"
# JSON lines: what each tensor is and where it lies, and everything else that is known of the run.
LOG = "log"
# One chunk of the arena is written at once; smaller tensors are gathered until one is full.
ARENA_CHUNK = 1 << 20
LOG_CHUNK = 1 << 16
EMPTY: NDArray[np.uint8] = np.zeros(0, np.uint8)

Record = LayerRecord | ParameterRecord | OptimizerRecord | SkippedRecord | Taken | NoiseRecord | str
_KINDS: dict[str, type[Any]] = {
    "layer": LayerRecord,
    "parameter": ParameterRecord,
    "optimizer": OptimizerRecord,
    "skipped": SkippedRecord,
    "taken": Taken,
    "noise": NoiseRecord,
}
# A member's `value` is looked up through a descriptor; a dict is several times faster.
_WORDS: dict[Phase | Role, str] = {word: word.value for kind in (Phase, Role) for word in kind}
_PHASES = {phase.value: phase for phase in Phase}
_ROLES = {role.value: role for role in Role}
# Names come again and again.
_quoted = lru_cache(maxsize=1 << 16)(json.dumps)
_NAMES = {kind: name for name, kind in _KINDS.items()}


def digest(data: NDArray[np.uint8], dtype: str, shape: tuple[int, ...]) -> str:
    """The digest of a tensor's bytes; equal bytes of another dtype or shape have another one."""
    return xxhash.xxh3_128_hexdigest(data.data, _seed_of(dtype, shape))


@lru_cache(maxsize=1 << 16)
def _seed_of(dtype: str, shape: tuple[int, ...]) -> int:
    return xxhash.xxh3_64_intdigest(f"{dtype}{shape}".encode())


def record_line(record: Record) -> dict[str, Any]:
    """A record as the JSON object that stands for it in the log."""
    if isinstance(record, str):
        return {"kind": "note", "text": record}
    return {"kind": _NAMES[type(record)], **asdict(record)}


def record_of(line: dict[str, Any]) -> Record:
    """The record that a JSON object of the log stands for.

    Raises:
        KeyError, TypeError, ValueError: the object is not of that form.
    """
    fields = dict(line)
    kind = fields.pop("kind")
    if kind == "note":
        return str(fields["text"])
    if kind == "noise":
        _check_noise(fields)
    made: Record = _KINDS[kind](**{name: frozen(value) for name, value in fields.items()})
    return made


def _check_noise(fields: dict[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError for values that no measurement gives."""
    key_of(fields)
    if _count(fields["runs"]) > 1_000_000:
        raise ValueError(f"{fields['runs']} runs")
    for name in ("spread", "exact"):
        if fields[name] is not None and not float(fields[name]) >= 0.0:
            raise ValueError(f"{name} is {fields[name]!r}")


def environment_of(line: dict[str, Any]) -> Environment:
    """The environment in the log's first line.

    Raises:
        KeyError, TypeError: the object is not of that form.
    """
    return Environment(**{name: frozen(value) for name, value in line["environment"].items()})


def frozen(value: Any) -> Any:
    """JSON's lists as tuples, all the way down."""
    return tuple(frozen(entry) for entry in value) if isinstance(value, list) else value


def event_line(key: EventKey, dtype: str, stored: str, shape: tuple[int, ...]) -> str:
    """The log's entry for one tensor up to where it lies, without the closing brace.

    Written by hand: the JSON encoder costs more than the tensor's own bytes.
    """
    return (
        f'{{"kind":"event","step":{key.step},"call":{key.call},"micro":{key.micro},'
        f'"rank":{key.rank},"phase":"{_WORDS[key.phase]}","role":"{_WORDS[key.role]}",'
        f'"name":{_quoted(key.name)},"slot":{_quoted(key.slot)},'
        f'"dtype":"{dtype}","stored":"{stored}","shape":{list(shape)}'
    )


def key_of(line: dict[str, Any]) -> EventKey:
    """The key in the log's entry for a tensor.

    Raises:
        KeyError, ValueError, TypeError: the object is not of that form.
    """
    # Dicts: calling an enumeration costs as much as the rest together.
    return EventKey(
        step=_count(line["step"]),
        phase=_PHASES[line["phase"]],
        role=_ROLES[line["role"]],
        name=_text(line["name"]),
        call=_count(line["call"]),
        slot=_text(line["slot"]),
        micro=_count(line["micro"]),
        rank=_count(line["rank"]),
    )


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value
