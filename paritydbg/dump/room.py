"""A place on disk for a new dump: what lies there is replaced only if it is one itself."""

from __future__ import annotations

import os

import h5py

from paritydbg.dump import schema
from paritydbg.errors import DumpError


def make_room(path: str) -> None:
    """Take an old dump away so that a new one can lie there; refuse anything else."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise DumpError(f"{path} cannot be written: its folder does not exist; mkdir -p {folder}")
    if os.path.isdir(path):
        raise DumpError(f"{path} is a folder; name a file, for instance {path.rstrip('/')}/ref.h5")
    if not os.path.lexists(path):
        return
    if not _is_dump(path):
        raise DumpError(f"{path} exists and is no paritydbg dump; name another file, or remove it")
    try:
        os.unlink(path)
    except OSError as error:
        raise DumpError(f"{path} cannot be replaced: {reason_of(error)}") from error


def _is_dump(path: str) -> bool:
    try:
        with h5py.File(path, "r", swmr=True, libver="latest", locking=False) as file:
            return bool(file.attrs.get("format") == schema.FORMAT)
    except (OSError, RuntimeError):
        return False


def reason_of(error: Exception) -> str:
    """An error of the file system or of HDF5 in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
