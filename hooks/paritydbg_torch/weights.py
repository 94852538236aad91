"""Parameters of torch nets as numpy arrays, and torch's own weights files."""

from __future__ import annotations

import os
import pickle
import tempfile
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paritydbg.errors import WeightsError
from paritydbg_torch.structure import named_tensors
from paritydbg_torch.values import values_of


def read_parameters(net: object) -> dict[str, NDArray[Any]]:
    """Every parameter and buffer by dotted name; bfloat16 comes as float32."""
    found: dict[str, NDArray[Any]] = {}
    for name, tensor, _ in named_tensors({"": net}):
        values = values_of(tensor)
        if values is not None:
            found[name] = values.decoded()
    return found


def write_parameters(net: object, values: Mapping[str, NDArray[Any]]) -> None:
    """Write values into parameters and buffers, in place, all or nothing.

    Raises:
        WeightsError: a name that the net lacks, or another shape.
    """
    tensors = {name: tensor for name, tensor, _ in named_tensors({"": net})}
    for name, array in values.items():
        if name not in tensors:
            raise WeightsError(f"the net has no parameter {name!r}; it was not written")
        if tuple(tensors[name].shape) != array.shape:
            raise WeightsError(
                f"{name} has shape {tuple(tensors[name].shape)} and was given {array.shape}; "
                "nothing was written"
            )
    for name, array in values.items():
        source = torch.from_numpy(np.array(array, order="C"))
        # Through data, which autograd does not see: a graph of an earlier call may still go backward
        # (two nets that train each other), and a forced replay writes what was there already.
        tensors[name].data.copy_(source)


def read_weights_file(path: str) -> dict[str, NDArray[Any]]:
    """The tensors of a .pth or .pt file, nested state dicts flattened by their last level.

    Raises:
        WeightsError: not such a file, truncated, or holding more than tensors.
    """
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise WeightsError(
            f"{path} cannot be read as torch weights: {_first_line(error)}"
        ) from error
    except pickle.UnpicklingError as error:
        raise WeightsError(
            f"{path} holds more than tensors, and only tensors are read; save the state_dict: "
            "torch.save(net.state_dict(), path)"
        ) from error
    found: dict[str, NDArray[Any]] = {}
    for name, tensor in _state_dict(loaded).items():
        values = values_of(tensor)
        if values is not None:
            found[name] = values.decoded()
    if not found:
        raise WeightsError(f"{path} holds no tensors")
    return found


def write_weights_file(path: str, net: object) -> None:
    """Save the net's state dict; an existing file is replaced only once the new one is whole."""
    if not isinstance(net, torch.nn.Module):
        raise WeightsError(f"a {type(net).__name__} is no torch module; nothing was written")
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(handle)
    try:
        torch.save(net.state_dict(), temporary)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _state_dict(loaded: object) -> Mapping[str, object]:
    """The mapping with the most tensors: a file's own, or one a level below (``state_dict`` …)."""
    if not isinstance(loaded, Mapping):
        return {}
    candidates = [loaded, *(entry for entry in loaded.values() if isinstance(entry, Mapping))]
    best = max(candidates, key=lambda c: sum(isinstance(v, torch.Tensor) for v in c.values()))
    return {str(name): tensor for name, tensor in best.items()}


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
