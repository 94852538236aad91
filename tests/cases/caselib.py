"""What the case files share: fault switch, seeded values, copying weights by name, named taps."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms
import numpy as np
import torch
from mindspore import Parameter, Tensor
from mindspore import nn as mnn
from numpy.typing import NDArray
from torch import nn as tnn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
torch.set_num_threads(1)

# A torch tensor's last name -> names that the MindSpore cell of the same path may hold it under.
COUNTERPARTS = {
    "weight": ("weight", "gamma", "embedding_table"),
    "bias": ("bias", "beta"),
    "running_mean": ("moving_mean", "running_mean"),
    "running_var": ("moving_variance", "running_var"),
}


def fault_is_on() -> bool:
    """Whether the port carries its mistake; the environment variable CASE_FAULT=0 takes it away."""
    return os.environ.get("CASE_FAULT", "1") != "0"


def generator(seed: int = 0) -> np.random.Generator:
    """A seeded source of random numbers."""
    return np.random.default_rng(seed)


def torch_tensor(array: NDArray[Any]) -> torch.Tensor:
    """The array as a torch tensor."""
    return torch.from_numpy(np.ascontiguousarray(array))


def mindspore_tensor(array: NDArray[Any]) -> Tensor:
    """The array as a MindSpore tensor."""
    return Tensor(np.ascontiguousarray(array))


def counterpart(cells: dict[str, mnn.Cell], torch_name: str) -> Parameter | None:
    """The MindSpore parameter for a torch state-dict key, None where there is none."""
    path, _, last = torch_name.rpartition(".")
    cell = cells.get(path)
    for name in COUNTERPARTS.get(last, (last,)):
        parameter = getattr(cell, name, None)
        if isinstance(parameter, Parameter):
            return parameter
    return None


def copy_by_name(
    torch_net: tnn.Module,
    mindspore_net: mnn.Cell,
    skip: Sequence[str] = (),
    edit: Callable[[str, NDArray[Any]], NDArray[Any]] | None = None,
) -> None:
    """Copy every torch tensor to the MindSpore parameter of the same name, edited on the way."""
    cells = {**dict(mindspore_net.cells_and_names()), "": mindspore_net}
    for name, tensor in torch_net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        if any(name.startswith(part) or name.endswith(part) for part in skip):
            continue
        parameter = counterpart(cells, name)
        if parameter is None:
            continue
        array = tensor.detach().numpy().copy()
        if edit is not None:
            array = edit(name, array)
        parameter.set_data(Tensor(array.reshape(parameter.shape).astype(np.float32)))


def randomize(torch_net: tnn.Module, seed: int = 0) -> tnn.Module:
    """Give norms and biases values that are not trivial, so that swapped or skipped copies show."""
    source = torch.Generator().manual_seed(seed + 100)
    with torch.no_grad():
        for parameter in torch_net.parameters():
            if parameter.dim() <= 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=source))
        for name, buffer in torch_net.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(0.1 * torch.randn(buffer.shape, generator=source))
            elif name.endswith("running_var"):
                buffer.mul_(0.5 + torch.rand(buffer.shape, generator=source))
    return torch_net


class TorchTap(tnn.Module):
    """Gives a functional result a name that hooks can see."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class MindSporeTap(mnn.Cell):
    """Gives a functional result a name that hooks can see."""

    def construct(self, x: Tensor) -> Tensor:
        return x * 1.0
