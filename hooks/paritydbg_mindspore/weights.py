"""Parameters of MindSpore nets as numpy arrays, and MindSpore's own checkpoint files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn
from numpy.typing import NDArray

from paritydbg.errors import WeightsError
from paritydbg_mindspore.structure import named_parameters
from paritydbg_mindspore.values import values_of


def read_parameters(net: object) -> dict[str, NDArray[Any]]:
    """Every parameter and buffer by dotted name; bfloat16 comes as float32."""
    found: dict[str, NDArray[Any]] = {}
    for name, tensor, _ in named_parameters({"": net}):
        values = values_of(tensor)
        if values is not None:
            found[name] = values.decoded()
    return found


def write_parameters(net: object, values: Mapping[str, NDArray[Any]]) -> None:
    """Write values into parameters and buffers, in place, all or nothing.

    Raises:
        WeightsError: a name that the net lacks, or another shape.
    """
    tensors = {name: tensor for name, tensor, _ in named_parameters({"": net})}
    for name, array in values.items():
        if name not in tensors:
            raise WeightsError(f"the net has no parameter {name!r}; nothing was written")
        if tuple(tensors[name].shape) != array.shape:
            raise WeightsError(
                f"{name} has shape {tuple(tensors[name].shape)} and was given {array.shape}; "
                "nothing was written"
            )
    for name, array in values.items():
        target = tensors[name]
        source = Tensor(np.array(array, order="C"), dtype=target.dtype)
        # Not set_data: after an optimizer ran once, it would no longer update the parameter.
        if isinstance(target, Parameter):
            ms.ops.assign(target, source)
        else:
            target.copy_(source)


def read_weights_file(path: str) -> dict[str, NDArray[Any]]:
    """The tensors of a .ckpt file.

    Raises:
        WeightsError: not such a file, truncated, or empty.
    """
    try:
        if os.path.getsize(path) == 0:
            raise WeightsError(f"{path} is empty")
        loaded = ms.load_checkpoint(path)
    except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
        first = str(error).strip().splitlines()
        reason = first[0] if first else type(error).__name__
        raise WeightsError(f"{path} cannot be read as a MindSpore checkpoint: {reason}") from error
    found: dict[str, NDArray[Any]] = {}
    for name, tensor in loaded.items():
        values = values_of(tensor)
        if values is not None:
            found[str(name)] = values.decoded()
    if not found:
        raise WeightsError(f"{path} holds no tensors")
    return found


def write_weights_file(path: str, net: object) -> None:
    """Save the net's parameters; an existing file is replaced only once the new one is whole."""
    if not isinstance(net, nn.Cell):
        raise WeightsError(f"a {type(net).__name__} is no MindSpore cell; nothing was written")
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".ckpt")
    os.close(handle)
    try:
        ms.save_checkpoint(net, temporary)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
