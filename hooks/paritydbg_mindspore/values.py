"""Copies of MindSpore tensors on the host, and where tensors lie in nested arguments and results."""

from __future__ import annotations

import numpy as np
from mindspore import Tensor

from paritydbg.model.event import Values
from paritydbg.session.nesting import Nesting

NESTING = Nesting(lambda value: isinstance(value, Tensor))


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
