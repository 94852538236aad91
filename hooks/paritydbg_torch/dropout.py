"""Switches dropout off in a launched script, so that two frameworks' random masks cannot differ."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn
from torch.nn import functional

_FUNCTIONS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)


def switch_off() -> None:
    """Let every dropout hand on what it is given, in layers, functions, attention and LSTM."""
    for name in _FUNCTIONS:
        setattr(functional, name, _hands_on)
    attend = functional.scaled_dot_product_attention

    @functools.wraps(attend)
    def attend_all(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) > 4:
            arguments = (*arguments[:4], 0.0, *arguments[5:])
        return attend(
            *arguments, **{**keywords, **({"dropout_p": 0.0} if "dropout_p" in keywords else {})}
        )

    functional.scaled_dot_product_attention = attend_all
    forward = nn.RNNBase.__init__

    @functools.wraps(forward)
    def init(self: nn.RNNBase, *arguments: Any, **keywords: Any) -> None:
        forward(self, *arguments, **keywords)
        self.dropout = 0.0

    nn.RNNBase.__init__ = init  # type: ignore[method-assign]


def _hands_on(input: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return input
