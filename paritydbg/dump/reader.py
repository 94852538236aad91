"""Reads a dump: its index at once, its tensors when they are asked for; nothing in it is trusted."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from paritydbg.dump import schema
from paritydbg.dump.sketches import SKETCH_BYTES, unpacked
from paritydbg.errors import DumpError, DumpNotFoundError, DumpVersionError, SketchOnlyError
from paritydbg.measure.sketch import Sketch, sketch
from paritydbg.model.event import Event, EventKey, decode
from paritydbg.model.record import (
    Environment,
    LayerRecord,
    NoiseRecord,
    OptimizerRecord,
    ParameterRecord,
    RunRecord,
    SkippedRecord,
    Taken,
)

# More than this is no log: 20,000 events take about 6 MB.
LOG_LIMIT = 2 << 30
_STORED: dict[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}


class Dump:
    """A dump that is open for reading; fulfils `paritydbg.model.source.EventSource`.

    Attributes:
        path: as it was given.
        run: layers, parameters, optimizers, environment, how the run ended.
        events: every tensor in order of execution; of a key written twice the later one.
    """

    def __init__(self, path: str, file: h5py.File) -> None:
        self.path = path
        self._file = file
        self._arena = _stream(file, schema.ARENA, path)
        # Chunks that were never written read as zeros and take no room in the file: its length, not
        # the arena's, says how much can be there.
        self._length = os.path.getsize(path)
        # event -> (offset, numpy dtype)
        self._places: dict[EventKey, tuple[int, np.dtype[Any]]] = {}
        self.run, self.events = self._read_log()

    def load(self, event: Event) -> NDArray[Any]:
        """The event's values; bfloat16 comes as float32, every other dtype as it is.

        Raises:
            SketchOnlyError: only a sketch of them was stored.
            DumpError: the file was damaged or closed in the meantime.
        """
        return decode(self.load_raw(event), event.dtype)

    def load_raw(self, event: Event) -> NDArray[Any]:
        """The event's values as stored: bfloat16 as its bits, uint16."""
        if not event.has_values:
            raise SketchOnlyError(
                f"{self.path} holds only a sketch of {event.key}; record it in full: "
                "paritydbg run without --sketch, narrowed with --layer"
            )
        at, dtype = self._places[event.key]
        values = np.empty(event.shape, dtype)
        flat = values.reshape(-1).view(np.uint8) if event.nbytes else schema.EMPTY
        self._read(event, at, flat)
        # Where a file was cut short HDF5 gives zeros without a word.
        if schema.digest(flat, event.dtype, event.shape) != event.digest:
            raise DumpError(
                f"{self.path} is damaged: the values of {event.key} are not those that were written; "
                "copy or record it again"
            )
        return values

    def load_sketch(self, event: Event) -> Sketch:
        """The event's sketch, worked out from the values where these are stored.

        Raises:
            DumpError: the file was damaged or closed in the meantime.
        """
        if event.has_values:
            return sketch(self.load(event))
        data = np.zeros(SKETCH_BYTES, np.uint8)
        self._read(event, self._places[event.key][0], data)
        found = unpacked(data)
        if found is None or found.count != _count(event):
            raise DumpError(
                f"{self.path} is damaged: the sketch of {event.key} is not the one that was written; "
                "copy or record it again"
            )
        return found

    def _read(self, event: Event, at: int, into: NDArray[np.uint8]) -> None:
        if not event.nbytes:
            return
        try:
            self._arena.read_direct(into, np.s_[at : at + event.nbytes])
        except (OSError, RuntimeError, ValueError) as error:
            raise DumpError(f"{self.path} cannot be read at {event.key}: {error}") from error

    def close(self) -> None:
        """Close the file; events can no longer be loaded."""
        self._file.close()

    def __enter__(self) -> Dump:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read_log(self) -> tuple[RunRecord, tuple[Event, ...]]:
        log = _stream(self._file, schema.LOG, self.path)
        if log.shape[0] > min(LOG_LIMIT, self._length):
            raise DumpError(f"{self.path} is damaged: its log claims {log.shape[0]:,} bytes")
        text: bytes = log[:].tobytes()
        records: dict[type[Any], list[Any]] = {}
        entries: dict[EventKey, dict[str, Any]] = {}
        first: dict[str, Any] = {}
        end: dict[str, Any] = {}
        try:
            for line in _lines(text):
                kind = line.get("kind")
                if kind == "event":
                    key = schema.key_of(line)
                    # Of a key written twice the later entry holds, in its later place.
                    entries.pop(key, None)
                    entries[key] = line
                elif kind == "run":
                    first = line
                elif kind == "end":
                    end = line
                else:
                    record = schema.record_of(line)
                    records.setdefault(type(record), []).append(record)
            environment = schema.environment_of(first)
            run = _run(environment, first, end, records)
            events = tuple(
                self._event(key, line, order) for order, (key, line) in enumerate(entries.items())
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DumpError(f"{self.path} is damaged: its log cannot be read ({error})") from error
        return run, events

    def _event(self, key: EventKey, line: dict[str, Any], order: int) -> Event:
        stored = line["stored"]
        dtype = _STORED.get(stored) if isinstance(stored, str) else None
        if dtype is None:
            raise ValueError(f"{key} has the dtype {stored!r}")
        shape = tuple(line["shape"])
        counts = (*shape, line["at"], line["nbytes"])
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in counts) or len(shape) > 32:
            raise ValueError(f"{key} has an impossible size")
        payload = line.get("payload", "values")
        if payload not in ("values", "sketch"):
            raise ValueError(f"{key} has the payload {payload!r}")
        if payload == "sketch":
            if line["nbytes"] != SKETCH_BYTES:
                raise ValueError(f"{key}: {line['nbytes']} bytes are no sketch")
        # Python's integers do not overflow.
        elif math.prod(shape) * dtype.itemsize != line["nbytes"]:
            raise ValueError(f"{key}: {line['nbytes']} bytes are not of shape {shape} {stored}")
        if line["at"] + line["nbytes"] > self._arena.shape[0] or line["nbytes"] > self._length:
            raise ValueError(f"{key} lies beyond the end of the file")
        self._places[key] = (line["at"], dtype)
        return Event(
            key, order, shape, str(line["dtype"]), line["nbytes"], str(line["digest"]), payload
        )


def open_dump(path: str | os.PathLike[str]) -> Dump:
    """The dump at the path, also one that is still being written or whose writer was killed.

    Raises:
        DumpNotFoundError: nothing is there.
        DumpVersionError: written by a newer version.
        DumpError: not a dump, or damaged.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise DumpNotFoundError(
            f"{name} does not exist. Record it: paritydbg run -o {name} -- python train.py"
        )
    if os.path.isdir(name):
        raise DumpError(f"{name} is a folder, not a dump")
    try:
        file = h5py.File(name, "r", swmr=True, libver="latest", locking=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise DumpError(
            f"{name} is no paritydbg dump: not an HDF5 file, or cut short; record it again"
        ) from error
    try:
        _check_version(file, name)
        return Dump(name, file)
    except BaseException:
        file.close()
        raise


def _count(event: Event) -> int:
    """Numbers in a tensor, two for a complex one."""
    return math.prod(event.shape) * (2 if event.dtype.startswith("complex") else 1)


def _check_version(file: h5py.File, path: str) -> None:
    try:
        kind, version = file.attrs.get("format"), file.attrs.get("version")
    except (OSError, RuntimeError, ValueError) as error:
        raise DumpError(f"{path} is damaged: its attributes cannot be read") from error
    if not isinstance(kind, str) or kind != schema.FORMAT:
        raise DumpError(
            f"{path} is an HDF5 file, but no paritydbg dump; record one: paritydbg run -o ref.h5 …"
        )
    if not isinstance(version, np.integer) or version < 1:
        raise DumpError(f"{path} is damaged: its format version is {version!r}")
    if version > schema.VERSION:
        raise DumpVersionError(
            f"{path} has format version {version}, this paritydbg reads up to {schema.VERSION}; "
            "update paritydbg: pip install -U paritydbg"
        )


def _stream(file: h5py.File, name: str, path: str) -> h5py.Dataset:
    """The flat byte dataset of that name that lies in the file itself."""
    try:
        # A link could lead out of the file; a dataset's raw data could lie in another one.
        link = file.get(name, getlink=True)
        found = file[name] if isinstance(link, h5py.HardLink) else None
        fits = (
            isinstance(found, h5py.Dataset)
            and found.dtype == np.uint8
            and found.ndim == 1
            and not found.external
            and not found.is_virtual
            # A filter could unpack a small file into any amount of memory.
            and found.id.get_create_plist().get_nfilters() == 0
        )
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise DumpError(f"{path} is damaged: {name} cannot be read") from error
    if not fits or found is None:
        raise DumpError(f"{path} is damaged: {name} is no flat byte dataset")
    return found


def _lines(text: bytes) -> Iterator[dict[str, Any]]:
    """The log's JSON objects; what a kill left behind the last whole line is no line."""
    whole, _, _ = text.rpartition(b"\n")
    if not whole:
        return
    # One call for all lines is several times faster than one each.
    for line in json.loads(b"[" + whole.replace(b"\n", b",") + b"]"):
        if not isinstance(line, dict):
            raise ValueError("a line is no object")
        yield line


def _run(
    environment: Environment,
    first: dict[str, Any],
    end: dict[str, Any],
    records: dict[type[Any], list[Any]],
) -> RunRecord:
    return RunRecord(
        environment=environment,
        layers=tuple(records.get(LayerRecord, ())),
        parameters=tuple(records.get(ParameterRecord, ())),
        optimizers=tuple(records.get(OptimizerRecord, ())),
        skipped=tuple(records.get(SkippedRecord, ())),
        taken=tuple(records.get(Taken, ())),
        command=str(first.get("command", "")),
        created=str(first.get("created", "")),
        complete=bool(end.get("complete", False)),
        ended=str(end.get("ended", "")) if end else "the process was killed, or still runs",
        notes=tuple(records.get(str, ())),
        noise=tuple(records.get(NoiseRecord, ())),
    )
