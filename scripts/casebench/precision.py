"""Sample pairs in lower precision: the same rounding on both sides, as far as the frameworks offer it.

``fp16``: parameters, buffers and floating inputs are float16. ``mixed``: parameters stay float32, and
linear and convolution layers compute in float16: torch's autocast on one side, ``to_float`` of just
these cells on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

PRECISIONS = ("fp32", "fp16", "mixed")


@dataclass(frozen=True)
class Lowered:
    """How a pair is brought to a precision.

    Attributes:
        torch_net, mindspore_net: change a net in place and give it back.
        inputs: changes a batch's tensors, of either framework.
        torch_region: what torch's forward pass runs in.
    """

    torch_net: Callable[[Any], Any]
    mindspore_net: Callable[[Any], Any]
    inputs: Callable[[dict[str, Any]], dict[str, Any]]
    torch_region: Callable[[], AbstractContextManager[Any]]


def lowered(precision: str) -> Lowered:
    """How nets and batches are brought to a precision; ``fp32`` leaves them as they are."""
    if precision == "fp16":
        return Lowered(lambda net: net.half(), _half_cells, _half_inputs, nullcontext)
    if precision == "mixed":
        return Lowered(_same, _mixed_cells, _same, _autocast)
    return Lowered(_same, _same, _same, nullcontext)


def _same(value: Any) -> Any:
    return value


def _autocast() -> AbstractContextManager[Any]:
    import torch

    return torch.autocast("cpu", dtype=torch.float16)


def _half_cells(net: Any) -> Any:
    import mindspore as ms

    for parameter in net.get_parameters():
        if parameter.dtype == ms.float32:
            parameter.set_dtype(ms.float16)
    return net


def _mixed_cells(net: Any) -> Any:
    import mindspore as ms
    from mindspore import nn

    kinds = (nn.Dense, nn.Conv1d, nn.Conv2d, nn.Conv2dTranspose)
    for _, cell in net.cells_and_names():
        if isinstance(cell, kinds):
            cell.to_float(ms.float16)
    return net


def _half_inputs(batch: dict[str, Any]) -> dict[str, Any]:
    done = {}
    for name, tensor in batch.items():
        floating = str(tensor.dtype) in ("torch.float32", "Float32")
        done[name] = tensor.half() if floating else tensor
    return done
