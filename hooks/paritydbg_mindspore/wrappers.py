"""Tells a net from the cells that training puts around it: steps, losses, casts, a person's own."""

from __future__ import annotations

from mindspore import nn
from mindspore.experimental.optim import Optimizer as ExperimentalOptimizer

from paritydbg_mindspore.structure import unwrapped

_OPTIMIZERS = (nn.Optimizer, ExperimentalOptimizer)
_STEPS = (
    nn.TrainOneStepCell,
    nn.TrainOneStepWithLossScaleCell,
    nn.WithLossCell,
    nn.WithEvalCell,
    nn.DistributedGradReducer,
)


def is_optimizer(cell: nn.Cell) -> bool:
    """Whether a cell is an optimizer."""
    return isinstance(cell, _OPTIMIZERS)


def is_loss(cell: nn.Cell) -> bool:
    """Whether a cell is one of the framework's losses, or derives from its base class."""
    return isinstance(cell, nn.LossBase)


def is_wrapper(cell: nn.Cell) -> bool:
    """Whether a cell only joins a net with its loss, its optimizer, or a cast: the net lies inside.

    A person's own wrapper owns no parameters, holds just one cell that has any, and beside it a loss
    or an optimizer.
    """
    if isinstance(cell, _STEPS) or unwrapped(cell) is not cell:
        return True
    if any(parameter is not None for parameter in cell._params.values()):
        return False
    children = [child for child in cell._cells.values() if child is not None]
    nets = [
        child
        for child in children
        if not is_optimizer(child) and not is_loss(child) and has_parameters(child)
    ]
    if len(nets) != 1:
        return False
    return any(is_optimizer(c) or is_loss(c) for c in children) or _holds_a_loss(cell)


def has_parameters(cell: nn.Cell) -> bool:
    """Whether a cell or one inside it owns a parameter."""
    return next(iter(cell.get_parameters()), None) is not None


def _holds_a_loss(cell: nn.Cell) -> bool:
    """Whether an attribute that is named as a loss is something to call."""
    attributes = {**vars(cell), **{k: v for k, v in cell._cells.items() if v is not None}}
    return any("loss" in name.lower() and callable(value) for name, value in attributes.items())
