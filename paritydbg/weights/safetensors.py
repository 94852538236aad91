"""The .safetensors format: a JSON header, then bytes. Bounds are checked before anything is allocated.

Format: https://huggingface.co/docs/safetensors (eight bytes of header length, the header, the data).
"""

from __future__ import annotations

import json
import os
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.errors import WeightsError
from paritydbg.model.event import decode

# As in the format's own reader.
_LONGEST_HEADER = 100_000_000

_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}


def read_safetensors(path: str) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name; bfloat16 comes as float32.

    Raises:
        WeightsError: not such a file, truncated, with overlapping tensors or a dtype numpy lacks.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        header, start = _header(stream, size, path)
        found: dict[str, NDArray[Any]] = {}
        last_end, last_name = 0, ""
        for begin, end, name, dtype, shape in _entries(header, size - start, path):
            if begin < last_end:
                raise WeightsError(f"{path}: tensors {last_name!r} and {name!r} overlap")
            last_end, last_name = end, name
            stream.seek(start + begin)
            data = stream.read(end - begin)
            if len(data) != end - begin:
                raise WeightsError(f"{path} ends inside tensor {name!r}; it is truncated")
            array = np.frombuffer(data, dtype=_DTYPES[dtype]).reshape(shape)
            named = "bfloat16" if dtype == "BF16" else str(array.dtype)
            found[name] = np.array(decode(array, named), order="C")
    return {name: found[name] for name in header if name in found}


def _header(stream: IO[bytes], size: int, path: str) -> tuple[dict[str, Any], int]:
    """The header and where the data starts."""
    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or length > min(size - 8, _LONGEST_HEADER):
        raise WeightsError(
            f"{path} promises a header of {length} bytes in a file of {size}; it is no .safetensors "
            "file, or truncated"
        )
    try:
        header = json.loads(stream.read(length).decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise WeightsError(f"{path} has no readable header; it is no .safetensors file") from error
    if not isinstance(header, dict):
        raise WeightsError(f"{path} has a header that is no table; it is no .safetensors file")
    header.pop("__metadata__", None)
    return header, 8 + length


def _entries(
    header: dict[str, Any], length: int, path: str
) -> list[tuple[int, int, str, str, tuple[int, ...]]]:
    """(begin, end, name, dtype, shape) of every tensor, by place in the file, each within bounds."""
    found = []
    for name, entry in header.items():
        try:
            dtype, shape = str(entry["dtype"]), tuple(entry["shape"])
            begin, end = entry["data_offsets"]
        except (TypeError, KeyError, ValueError) as error:
            raise WeightsError(f"{path}: the header's entry for {name!r} is incomplete") from error
        numbers = (*shape, begin, end)
        if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
            raise WeightsError(f"{path}: tensor {name!r} has sizes that are no whole numbers")
        if dtype not in _DTYPES:
            raise WeightsError(
                f"{path}: tensor {name!r} is of dtype {dtype}, which numpy has not; convert it to "
                "float32 first"
            )
        needed = prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
        if not begin <= end <= length or end - begin != needed:
            raise WeightsError(
                f"{path}: tensor {name!r} of shape {shape} needs {needed} bytes and lies at {begin} "
                f"to {end} of {length}; the file is truncated or damaged"
            )
        found.append((begin, end, name, dtype, shape))
    return sorted(found)
