"""Weights from wherever they lie: a dump, a file of either framework, numpy's or .safetensors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from paritydbg.adapters import load_adapter
from paritydbg.errors import DumpError, WeightsError
from paritydbg.model.event import Phase, Role
from paritydbg.model.record import ParameterRecord
from paritydbg.model.source import EventSource
from paritydbg.weights.archives import read_npy, read_npz
from paritydbg.weights.pairing import Side
from paritydbg.weights.safetensors import read_safetensors

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIP = b"PK\x03\x04"
_NPY = b"\x93NUMPY"


def read_weights(path: str | os.PathLike[str]) -> Side:
    """The weights that lie at the path, with whatever is known of their layers.

    What kind of file it is, is told by its first bytes, then by its ending.

    Raises:
        WeightsError: the file is missing, of no known kind, truncated or damaged.
        AdapterError: it is a framework's own file, and that framework is missing.
    """
    where = os.fspath(path)
    try:
        with open(where, "rb") as stream:
            start = stream.read(16)
        return _read(where, start, os.path.splitext(where)[1].lower())
    except FileNotFoundError as error:
        raise WeightsError(f"{where} does not exist; give a dump or a weights file") from error
    except OSError as error:
        raise WeightsError(f"{where} cannot be read ({error.strerror or error})") from error


def side_of(values: Mapping[str, NDArray[Any]]) -> Side:
    """A side that is known by its tensors alone; layers are told by the names."""
    parameters = tuple(
        ParameterRecord(
            name=name,
            layer=name.rpartition(".")[0],
            shape=tuple(int(length) for length in array.shape),
            dtype=str(array.dtype),
            trainable=array.dtype.kind == "f",
        )
        for name, array in values.items()
    )
    return Side((), parameters, values)


def initial_values(source: EventSource) -> dict[str, NDArray[Any]]:
    """Parameters and buffers of a dump as they were before its first step, tied ones by every name."""
    found: dict[str, NDArray[Any]] = {}
    for event in source.events:
        key = event.key
        before = key.phase is Phase.FORWARD and key.role in (Role.PARAMETER, Role.BUFFER)
        # What a run starts from is never a sketch; later values may be.
        if before and event.has_values and key.rank == 0 and key.name not in found:
            found[key.name] = source.load(event)
    for parameter in source.run.parameters:
        if parameter.name not in found and parameter.tied_to in found:
            found[parameter.name] = found[parameter.tied_to]
    return found


def _read(path: str, start: bytes, ending: str) -> Side:
    if not start:
        raise WeightsError(f"{path} is empty; write it again")
    if start.startswith(_HDF5):
        return _from_dump(path)
    if start.startswith(_NPY):
        return side_of(read_npy(path))
    if ending == ".npz":
        return side_of(read_npz(path))
    if ending == ".npy":
        raise WeightsError(f"{path} is no .npy data; write it with numpy.save")
    if ending == ".safetensors":
        return side_of(read_safetensors(path))
    if ending in (".pth", ".pt", ".bin", ".pkl"):
        return side_of(load_adapter("torch").read_weights_file(path))
    if ending == ".ckpt":
        # The ending is used by other trainers too, whose files are torch's.
        name = "torch" if start.startswith(_ZIP) else "mindspore"
        return side_of(load_adapter(name).read_weights_file(path))
    raise WeightsError(
        f"{path} is of no known kind; give a dump, .safetensors, .npz, .npy, .pth, .pt or .ckpt"
    )


def _from_dump(path: str) -> Side:
    # Only here: reading any other file needs no HDF5.
    from paritydbg.dump.reader import open_dump

    try:
        with open_dump(path) as source:
            values = initial_values(source)
            layers, parameters = source.run.layers, source.run.parameters
    except DumpError as error:
        raise WeightsError(str(error)) from error
    if not values:
        raise WeightsError(
            f"{path} holds no parameters from before a step; record the role parameter too"
        )
    return Side(layers, parameters, values)
