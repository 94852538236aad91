"""Patches torch in a launched script: finds the net, the optimizers, the loss and the labels.

What is done with them lies in `script`; here is only where torch is taken hold of. Every patch asks
first whether the launch is active, so that forked workers and later steps run as if nothing were.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.nn import functional

from paritydbg.session.launch import Launch
from paritydbg_torch import dropout
from paritydbg_torch.script import Script

# Functional losses whose second argument is the label; loss layers call these.
LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
)


def patch(launch: Launch) -> None:
    """Put the patches in; the script has torch imported and nothing else yet."""
    script = Script(launch)
    if launch.order.no_dropout:
        dropout.switch_off()
    _patch_calls(script)
    _patch_optimizers(script)
    _patch_backward(script)
    _patch_losses(script)
    _patch_scaler(script)


def _patch_calls(script: Script) -> None:
    original = torch.nn.Module.__call__

    @functools.wraps(original)
    def call(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
        if script.active and script.takes(module):
            return script.call_net(module, original, arguments, keywords)
        return original(module, *arguments, **keywords)

    torch.nn.Module.__call__ = call  # type: ignore[method-assign,assignment]


def _patch_optimizers(script: Script) -> None:
    original = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(optimizer: torch.optim.Optimizer, *arguments: Any, **keywords: Any) -> None:
        original(optimizer, *arguments, **keywords)
        if script.active:
            script.optimizer_made(optimizer)

    torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]


def _patch_backward(script: Script) -> None:
    original = torch.Tensor.backward

    @functools.wraps(original)
    def backward(loss: torch.Tensor, *arguments: Any, **keywords: Any) -> None:
        if script.active:
            script.loss_found(loss)
        original(loss, *arguments, **keywords)

    torch.Tensor.backward = backward  # type: ignore[method-assign,assignment]
    several = torch.autograd.backward

    @functools.wraps(several)
    def backward_of(tensors: Any, *arguments: Any, **keywords: Any) -> None:
        # Tensor.backward ends here too; what it gave was noted already.
        if script.active:
            for loss in (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors):
                script.loss_found(loss)
        several(tensors, *arguments, **keywords)

    torch.autograd.backward = backward_of


def _patch_losses(script: Script) -> None:
    for name in LOSSES:
        original = getattr(functional, name)

        @functools.wraps(original)
        def loss(
            *arguments: Any, _original: Any = original, _name: str = name, **keywords: Any
        ) -> Any:
            if not script.active:
                return _original(*arguments, **keywords)
            return script.call_loss(_name, _original, arguments, keywords)

        setattr(functional, name, loss)


def _patch_scaler(script: Script) -> None:
    scaler = torch.amp.GradScaler
    scale, update = scaler.scale, scaler.update

    @functools.wraps(scale)
    def scaled(self: Any, outputs: Any) -> Any:
        result = scale(self, outputs)
        if script.active and isinstance(outputs, torch.Tensor):
            script.loss_scaled(outputs, result, self)
        return result

    @functools.wraps(update)
    def updated(self: Any, *arguments: Any, **keywords: Any) -> None:
        update(self, *arguments, **keywords)
        if script.active:
            script.step_over()

    scaler.scale = scaled  # type: ignore[method-assign]
    scaler.update = updated  # type: ignore[method-assign]
