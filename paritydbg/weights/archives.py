"""numpy's archives, .npz and .npy: read without pickle and with sizes checked first, written atomically."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as numpy_format
from numpy.typing import NDArray

from paritydbg.errors import WeightsError

Array = NDArray[Any]

# Typed in some versions of numpy, untyped in others.
npy: Any = numpy_format

# Longer headers than this belong to record types that no weight has.
_LONGEST_HEADER = 10_000


def read_npz(path: str) -> dict[str, Array]:
    """The arrays of a .npz by name; member names are only names and are never written to.

    Raises:
        WeightsError: not such a file, truncated, damaged, or holding objects.
    """
    found: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.filename.endswith(".npy"):
                    continue
                name = member.filename[: -len(".npy")]
                if name in found:
                    raise WeightsError(
                        f"{path} holds {name!r} twice; which one counts is not known"
                    )
                with archive.open(member) as stream:
                    found[name] = _read(stream, member.file_size, f"{path}, entry {name!r}")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise WeightsError(f"{path} is no readable .npz ({error}); write it again") from error
    return found


def read_npy(path: str) -> dict[str, Array]:
    """The one array of a .npy, under the file's name without its ending.

    Raises:
        WeightsError: not such a file, truncated, or holding objects.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    with open(path, "rb") as stream:
        return {name: _read(stream, os.path.getsize(path), path)}


def write_npz(path: str, values: Mapping[str, Array]) -> None:
    """Write arrays to a .npz; the file is complete or not there.

    Raises:
        WeightsError: the file cannot be written.
    """
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(suffix=".npz", dir=folder)
        try:
            with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
                # Not numpy.savez: it takes names as keyword arguments and refuses some ("file").
                for name, array in values.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        npy.write_array(entry, np.asarray(array), allow_pickle=False)
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise WeightsError(f"{path} cannot be written ({error.strerror or error})") from error


def _read(stream: IO[bytes], length: int, where: str) -> Array:
    """One array in .npy format from a stream of known length, checked before anything is allocated."""
    try:
        version = npy.read_magic(stream)
        if version == (1, 0):
            header = npy.read_array_header_1_0(stream, max_header_size=_LONGEST_HEADER)
        elif version == (2, 0):
            header = npy.read_array_header_2_0(stream, max_header_size=_LONGEST_HEADER)
        else:
            raise WeightsError(
                f"{where} is in .npy format {version[0]}.{version[1]}; save it again with numpy.save"
            )
    except (ValueError, EOFError, SyntaxError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise WeightsError(f"{where} is no .npy data ({reason})") from error
    shape, fortran, dtype = header
    if dtype.hasobject:
        raise WeightsError(
            f"{where} holds Python objects, which are not read; save plain number arrays"
        )
    if dtype.kind not in "fiubc":
        raise WeightsError(f"{where} holds {dtype} values, no numbers; save plain number arrays")
    count = prod(shape)
    # A compressed entry may lie about its own length too, so reading stops at what it promised.
    if count < 0 or count * dtype.itemsize > length:
        raise WeightsError(
            f"{where} promises {tuple(shape)} of {dtype} ({count * dtype.itemsize} bytes) and has "
            f"{length}; it is truncated or damaged"
        )
    data = stream.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise WeightsError(f"{where} ends after {len(data)} of {count * dtype.itemsize} bytes")
    flat = np.frombuffer(data, dtype=dtype)
    shaped = flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
    return np.array(shaped, dtype=dtype.newbyteorder("="), order="C")
