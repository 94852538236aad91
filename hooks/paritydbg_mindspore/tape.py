"""Whether gradients are being recorded now, wherever this MindSpore keeps its executor."""

from __future__ import annotations

from mindspore import Tensor

try:
    from mindspore.graph.api import _pynative_executor
except ImportError:  # before 2.9
    from mindspore.common.api import _pynative_executor


def gradients_are_on() -> bool:
    """Whether operators that run now are recorded for a backward pass."""
    return bool(_pynative_executor.grad_flag())


def was_computed(tensor: Tensor) -> bool:
    """Whether a gradient would flow back through the tensor to what made it."""
    node = getattr(tensor, "_grad_node", None)
    # An argument that is differentiated has a node as well, one that leads nowhere.
    return node is not None and not str(node).startswith("<input_")
