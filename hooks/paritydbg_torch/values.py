"""Copies of torch tensors on the host, and where tensors lie in nested arguments and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence

from paritydbg.model.event import Values

# Dtypes that numpy lacks: stored as the bits of an integer of that size.
_BITS = {torch.bfloat16: torch.uint16}
for _name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
    if hasattr(torch, _name):
        _BITS[getattr(torch, _name)] = torch.uint8


def values_of(tensor: object) -> Values | None:
    """A copy of the values of a tensor, array or number, or None for anything else."""
    if isinstance(tensor, torch.Tensor):
        return _of_tensor(tensor)
    if isinstance(tensor, (bool, int, float, complex, np.generic)):
        return Values.of(np.asarray(tensor))
    if isinstance(tensor, np.ndarray) and tensor.dtype.kind in "biufc":
        return Values.of(tensor)
    return None


def _of_tensor(tensor: torch.Tensor) -> Values | None:
    plain = tensor.detach()
    if plain.layout != torch.strided or plain.is_quantized or plain.device.type == "meta":
        return None
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    name = dtype_name(plain.dtype)
    if plain.dtype in _BITS:
        plain = plain.contiguous().view(_BITS[plain.dtype])
    elif plain.dtype.is_complex and plain.dtype not in (torch.complex64, torch.complex128):
        plain = plain.to(torch.complex64)
    # A copy even on the CPU: in-place operators would reach into a view.
    return Values(np.array(plain.cpu().numpy(), order="C"), name)


def dtype_name(dtype: torch.dtype) -> str:
    """The dtype's name without the framework's: ``float32``."""
    return str(dtype).removeprefix("torch.")


def tensors_in(
    value: object, slot: str = ""
) -> Iterator[tuple[str, torch.Tensor | PackedSequence]]:
    """Every tensor in nested tuples, lists, dicts and dataclass-like results, with its slot.

    A packed batch of sequences comes as one.
    """
    if isinstance(value, (torch.Tensor, PackedSequence)):
        yield slot, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from tensors_in(entry, _joined(slot, str(key)))
    elif isinstance(value, (tuple, list)):
        names: Any = getattr(value, "_fields", None) or range(len(value))
        for key, entry in zip(names, value, strict=True):
            yield from tensors_in(entry, _joined(slot, str(key)))
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for key in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, key), _joined(slot, key))


def tensors_in_call(
    arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Iterator[tuple[str, torch.Tensor | PackedSequence]]:
    """Every tensor among a call's arguments; slots are positions or keyword names."""
    for position, value in enumerate(arguments):
        yield from tensors_in(value, str(position))
    for name, value in keywords.items():
        yield from tensors_in(value, name)


def _joined(slot: str, key: str) -> str:
    return f"{slot}.{key}" if slot else key
