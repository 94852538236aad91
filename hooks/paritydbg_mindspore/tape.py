"""Whether gradients are being recorded now, wherever this MindSpore keeps its executor."""

from __future__ import annotations

try:
    from mindspore.graph.api import _pynative_executor
except ImportError:  # before 2.9
    from mindspore.common.api import _pynative_executor


def gradients_are_on() -> bool:
    """Whether operators that run now are recorded for a backward pass."""
    return bool(_pynative_executor.grad_flag())
