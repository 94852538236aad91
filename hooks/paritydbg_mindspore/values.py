"""Copies of MindSpore tensors on the host, and where tensors lie in nested arguments and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from mindspore import Tensor

from paritydbg.model.event import Values


def values_of(tensor: object) -> Values | None:
    """A copy of the values of a tensor, array or number, or None for anything else."""
    if isinstance(tensor, Tensor):
        name = dtype_name(tensor)
        if name == "bfloat16":
            # numpy has no such dtype: the bits as they lie in memory.
            bits = np.frombuffer(tensor.get_bytes(), np.uint16).reshape(tensor.shape)
            return Values(np.array(bits, order="C"), name)
        array = tensor.asnumpy()
        if array.dtype.kind not in "biufc":
            return None
        # A copy: MindSpore uses its buffers again.
        return Values(np.array(array, order="C"), name)
    if isinstance(tensor, (bool, int, float, complex, np.generic)):
        return Values.of(np.asarray(tensor))
    if isinstance(tensor, np.ndarray) and tensor.dtype.kind in "biufc":
        return Values.of(tensor)
    return None


def dtype_name(tensor: Tensor) -> str:
    """The dtype's name without the framework's: ``float32``, ``bool``."""
    name = str(tensor.dtype).lower()
    return {"bool_": "bool"}.get(name, name)


def tensors_in(value: object, slot: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor in nested tuples, lists and dicts, with its slot."""
    if isinstance(value, Tensor):
        yield slot, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from tensors_in(entry, _joined(slot, str(key)))
    elif isinstance(value, (tuple, list)):
        names: Any = getattr(value, "_fields", None) or range(len(value))
        for key, entry in zip(names, value, strict=True):
            yield from tensors_in(entry, _joined(slot, str(key)))


def tensors_in_call(
    arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor among a call's arguments; slots are positions or keyword names."""
    for position, value in enumerate(arguments):
        yield from tensors_in(value, str(position))
    for name, value in keywords.items():
        yield from tensors_in(value, name)


def _joined(slot: str, key: str) -> str:
    return f"{slot}.{key}" if slot else key
