"""Writes a dump: tensors into one growing arena, what they are into a log, flushed as it goes."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import lru_cache
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from paritydbg.dump import schema
from paritydbg.dump.room import make_room, reason_of
from paritydbg.dump.sketches import SKETCH_BYTES, Choice, packed
from paritydbg.errors import DumpError
from paritydbg.measure.sketch import sketch as sketch_of
from paritydbg.model.event import EventKey, Values
from paritydbg.model.record import Environment

# What a kill may cost at most: so many seconds, so many bytes.
FLUSH_SECONDS = 0.1
FLUSH_BYTES = 64 << 20
# From here on hashing beside writing pays for the hand-over, and every so many bytes are looked at.
_LARGE = 4 << 20
_STRIDE = 65_537


class DumpWriter:
    """A dump that is being written; usable from several threads.

    Tensors go to the file at once, without a writer thread (FORMAT.md has the measurement); their
    log entries follow with the next flush, data first.

    Args:
        path: of the file. A dump that is there is replaced; anything else there is refused.
        environment: where the run is made.
        command: the script's command line.
        sketch: whether larger tensors are stored as sketches of 2 KB. The batch, and parameters and
            buffers before the first step, are stored as values in any case: a port starts from them.

    Raises:
        DumpError: the path cannot be written, or holds something that is no dump.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        environment: Environment,
        *,
        command: str = "",
        sketch: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self._choice = Choice() if sketch else None
        # Digest of a tensor -> place of its sketch.
        self._sketched: dict[str, int] = {}
        self._lock = threading.RLock()
        self._known: dict[str, int] = {}
        # Digests of a few bytes of each large tensor: what has a new one is new itself.
        self._samples: set[str] = set()
        self._hasher = ThreadPoolExecutor(1, thread_name_prefix="paritydbg-hash")
        self._chunk = np.zeros(schema.ARENA_CHUNK, np.uint8)
        self._filled = 0
        self._chunks = 0
        self._lines: list[str] = []
        self._log_size = 0
        self._pending = 0
        self._flushed = time.monotonic()
        self._closed = threading.Event()
        make_room(self.path)
        try:
            self._open()
        except OSError as error:
            raise DumpError(f"{self.path} cannot be written: {reason_of(error)}") from error
        first = {
            "kind": "run",
            "environment": asdict(environment),
            "command": command,
            "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        self._lines.append(json.dumps(first))
        self.flush()
        self._flusher = threading.Thread(target=self._keep_flushing, daemon=True)
        self._flusher.start()

    def add(self, key: EventKey, values: Values) -> None:
        """Store one tensor; bytes that are there already are not stored again.

        A key that was added before is replaced for readers. The array must not change afterwards.

        Raises:
            DumpError: the file cannot be written any more (disk full, folder gone).
        """
        array = _little_endian(values.array)
        dtype, stored = values.dtype, _name_of(array.dtype)
        size = array.nbytes
        # Not tobytes(): a view costs nothing.
        data = array.reshape(-1).view(np.uint8) if size else schema.EMPTY
        with self._lock:
            payload = ""
            if self._choice is not None and self._choice.sketches(key, values):
                name, at = self._store_sketch(data, Values(array, dtype))
                size, payload = SKETCH_BYTES, ',"payload":"sketch"'
            else:
                name, at = self._store(data, dtype, array.shape)
            entry = schema.event_line(key, dtype, stored, array.shape)
            self._lines.append(f'{entry},"at":{at},"nbytes":{size},"digest":"{name}"{payload}}}')
            self._pending += size
            if self._pending > FLUSH_BYTES or time.monotonic() - self._flushed > FLUSH_SECONDS:
                self.flush()

    def _store(
        self, data: NDArray[np.uint8], dtype: str, shape: tuple[int, ...]
    ) -> tuple[str, int]:
        """Digest and place of a tensor's bytes, which are appended unless they are there already."""
        if len(data) < _LARGE:
            name = schema.digest(data, dtype, shape)
        else:
            sample = schema.digest(np.concatenate((data[:64], data[::_STRIDE])), dtype, shape)
            if sample not in self._samples:
                # Like nothing that is there: it is hashed while it is written.
                self._samples.add(sample)
                hashing = self._begin_hashing(data, dtype, shape)
                at = self._append(data)
                name = schema.digest(data, dtype, shape) if hashing is None else hashing.result()
                self._known[name] = at
                return name, at
            name = schema.digest(data, dtype, shape)
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._append(data)
        return name, known

    def _store_sketch(self, data: NDArray[np.uint8], values: Values) -> tuple[str, int]:
        """Digest of a tensor's bytes and place of its sketch, which is made where it is not there."""
        name = schema.digest(data, values.dtype, values.array.shape)
        at = self._sketched.get(name)
        if at is None:
            at = self._sketched[name] = self._append(packed(sketch_of(values.decoded())))
        return name, at

    def _begin_hashing(
        self, data: NDArray[np.uint8], dtype: str, shape: tuple[int, ...]
    ) -> Future[str] | None:
        try:
            return self._hasher.submit(schema.digest, data, dtype, shape)
        except RuntimeError:
            # The interpreter is ending, and takes no new work for threads.
            return None

    def record(self, record: schema.Record) -> None:
        """Store a record; a plain string is a note."""
        line = json.dumps(schema.record_line(record))
        with self._lock:
            self._lines.append(line)

    def flush(self) -> None:
        """Make everything added so far survive the end of the process.

        Raises:
            DumpError: the file cannot be written any more.
        """
        with self._lock:
            if self._closed.is_set() or not self._lines:
                return
            try:
                self._write_out()
            except (OSError, RuntimeError) as error:
                raise DumpError(f"{self.path} cannot be written: {reason_of(error)}") from error

    def close(self, complete: bool = True, ended: str = "") -> None:
        """Finish the file; ``ended`` says why where the run is not complete. Twice is fine."""
        with self._lock:
            if self._closed.is_set():
                return
            end = {"kind": "end", "complete": complete, "ended": ended}
            self._lines.append(json.dumps(end))
            try:
                self.flush()
            finally:
                self._closed.set()
                self._file.close()
                self._hasher.shutdown()
        # A daemon thread that the interpreter's end stops inside h5py keeps h5py's lock for ever.
        if threading.current_thread() is not self._flusher:
            self._flusher.join()

    def __enter__(self) -> DumpWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(kind is None, f"{kind.__name__}: {error}" if kind else "")

    def _open(self) -> None:
        self._file = h5py.File(self.path, "w", libver="latest")
        self._file.attrs["format"] = schema.FORMAT
        # What holds no sketch stays readable for versions that know none.
        self._file.attrs["version"] = (
            schema.PLAIN_VERSION if self._choice is None else schema.VERSION
        )
        self._arena = self._stream(schema.ARENA, schema.ARENA_CHUNK)
        self._log = self._stream(schema.LOG, schema.LOG_CHUNK)
        # From here on no object may be made, and every flush leaves a file that can be read.
        self._file.swmr_mode = True

    def _stream(self, name: str, chunk: int) -> h5py.Dataset:
        return self._file.create_dataset(
            name, shape=(0,), maxshape=(None,), chunks=(chunk,), dtype="u1"
        )

    def _append(self, data: NDArray[np.uint8]) -> int:
        """Put bytes at the arena's end; full chunks go to the file at once."""
        size = schema.ARENA_CHUNK
        at = self._chunks * size + self._filled
        end = self._filled + len(data)
        if end < size:
            self._chunk[self._filled : end] = data
            self._filled = end
            return at
        done = 0
        try:
            while done < len(data):
                if not self._filled and len(data) - done >= size:
                    whole = (len(data) - done) // size
                    self._arena.resize(((self._chunks + whole) * size,))
                    for _ in range(whole):
                        self._write_chunk(data[done : done + size])
                        self._chunks += 1
                        done += size
                    continue
                part = min(size - self._filled, len(data) - done)
                self._chunk[self._filled : self._filled + part] = data[done : done + part]
                self._filled += part
                done += part
                if self._filled == size:
                    self._write_partial()
                    self._chunks += 1
                    self._filled = 0
        except (OSError, RuntimeError) as error:
            raise DumpError(f"{self.path} cannot be written: {reason_of(error)}") from error
        return at

    def _write_partial(self) -> None:
        self._arena.resize((self._chunks * schema.ARENA_CHUNK + self._filled,))
        self._write_chunk(self._chunk)

    def _write_chunk(self, data: NDArray[np.uint8]) -> None:
        self._arena.id.write_direct_chunk((self._chunks * schema.ARENA_CHUNK,), data)

    def _write_out(self) -> None:
        """Data first, then the log that points at it."""
        if self._filled:
            self._write_partial()
        self._arena.flush()
        text = ("\n".join(self._lines) + "\n").encode()
        self._lines.clear()
        self._log.resize((self._log_size + len(text),))
        self._log[self._log_size :] = np.frombuffer(text, np.uint8)
        self._log_size += len(text)
        self._log.flush()
        self._pending = 0
        self._flushed = time.monotonic()

    def _keep_flushing(self) -> None:
        """Flush what waits while nothing new arrives."""
        while not self._closed.wait(FLUSH_SECONDS):
            try:
                self.flush()
            except DumpError:
                # The thread that records meets the same error and is the one to report it.
                return


@lru_cache
def _name_of(dtype: np.dtype[Any]) -> str:
    """numpy works the name out each time, which costs more than a small tensor's bytes."""
    return dtype.name


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    """The array C-contiguous, in the byte order of the file, its shape as it was."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if not array.flags.c_contiguous:
        array = np.array(array, order="C")
    return array
