"""Copies of torch tensors on the host, and where tensors lie in nested arguments and results."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence

from paritydbg.model.event import Values
from paritydbg.session.nesting import Nesting

# Dtypes that numpy lacks: stored as the bits of an integer of that size.
_BITS = {torch.bfloat16: torch.uint16}
for _name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
    if hasattr(torch, _name):
        _BITS[getattr(torch, _name)] = torch.uint8

# A packed batch of sequences counts as one tensor.
NESTING = Nesting(lambda value: isinstance(value, (torch.Tensor, PackedSequence)), records=True)


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
