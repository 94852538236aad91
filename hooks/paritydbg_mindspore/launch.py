"""Patches MindSpore in a launched script: finds the net, the optimizers, the loss and the labels.

What is done with them lies in `script`; here is only where MindSpore is taken hold of. Every patch
asks first whether the launch is active, so that later steps run as if nothing were.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import mindspore as ms
from mindspore import amp, context, mint, nn, ops
from mindspore.experimental.optim import Optimizer as ExperimentalOptimizer

from paritydbg.session.launch import Launch
from paritydbg_mindspore import dropout
from paritydbg_mindspore.script import Script

# Functional losses whose second argument is the label. Loss cells are found by their base class.
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
    "smooth_l1_loss",
    "soft_margin_loss",
)


def patch(launch: Launch) -> None:
    """Put the patches in; the script has mindspore imported and nothing else yet."""
    script = Script(launch)
    if launch.order.no_dropout:
        dropout.switch_off()
    _patch_mode(script)
    _patch_calls(script)
    _patch_optimizers(script)
    _patch_gradients(script)
    for module in (ops, mint.nn.functional):
        _patch_losses(script, module)
    _patch_scalers(script)


def _patch_mode(script: Script) -> None:
    """Hooks fire operator by operator alone: a script that asks for a graph is run so all the same."""
    original = context.set_context

    @functools.wraps(original)
    def set_context(**settings: Any) -> None:
        if script.active and settings.get("mode") == ms.GRAPH_MODE:
            settings["mode"] = ms.PYNATIVE_MODE
            script.graph_mode_wanted()
        original(**settings)

    context.set_context = set_context
    ms.set_context = set_context
    if ms.get_context("mode") == ms.GRAPH_MODE:
        original(mode=ms.PYNATIVE_MODE)
        script.graph_mode_wanted()
    blocking = getattr(getattr(ms, "runtime", None), "launch_blocking", None)
    if blocking is not None:
        # Each operator ends before the next begins: values are read faster, errors come in place.
        blocking()


def _patch_calls(script: Script) -> None:
    original = nn.Cell.__call__

    @functools.wraps(original)
    def call(cell: nn.Cell, *arguments: Any, **keywords: Any) -> Any:
        if not script.watches_calls:
            return original(cell, *arguments, **keywords)
        return script.call_cell(cell, original, arguments, keywords)

    nn.Cell.__call__ = call


def _patch_optimizers(script: Script) -> None:
    for kind in (nn.Optimizer, ExperimentalOptimizer):
        original = kind.__init__

        @functools.wraps(original)
        def init(
            optimizer: Any, *arguments: Any, _original: Any = original, **keywords: Any
        ) -> None:
            _original(optimizer, *arguments, **keywords)
            if script.active:
                script.optimizer_made(optimizer)

        kind.__init__ = init


def _patch_gradients(script: Script) -> None:
    value_and_grad, grad = ops.value_and_grad, ops.grad

    @functools.wraps(value_and_grad)
    def patched_value_and_grad(fn: Any, *arguments: Any, **keywords: Any) -> Callable[..., Any]:
        gradient_of = value_and_grad(fn, *arguments, **keywords)

        @functools.wraps(gradient_of)
        def call(*inputs: Any, **named: Any) -> Any:
            result = gradient_of(*inputs, **named)
            if script.active:
                script.loss_found(result[0], "the value that value_and_grad returns")
            return result

        return call

    @functools.wraps(grad)
    def patched_grad(fn: Any, *arguments: Any, **keywords: Any) -> Callable[..., Any]:
        if isinstance(fn, nn.Cell):
            # A cell's result is seen where cells are called.
            return grad(fn, *arguments, **keywords)

        @functools.wraps(fn)
        def forward(*inputs: Any, **named: Any) -> Any:
            result = fn(*inputs, **named)
            if script.active:
                script.loss_found(result, "what the function given to grad returns")
            return result

        return grad(forward, *arguments, **keywords)

    for module in (ms, ops):
        module.value_and_grad = patched_value_and_grad
        module.grad = patched_grad


def _patch_losses(script: Script, module: ModuleType) -> None:
    for name in LOSSES:
        original = getattr(module, name, None)
        if original is None:
            continue

        @functools.wraps(original)
        def loss(
            *arguments: Any, _original: Any = original, _name: str = name, **keywords: Any
        ) -> Any:
            if not script.active:
                return _original(*arguments, **keywords)
            return script.call_loss(_name, _original, arguments, keywords)

        setattr(module, name, loss)


def _patch_scalers(script: Script) -> None:
    for kind in (amp.StaticLossScaler, amp.DynamicLossScaler):
        scale, adjust = kind.scale, kind.adjust

        def scaled(self: Any, inputs: Any, _scale: Any = scale) -> Any:
            result = _scale(self, inputs)
            if script.active:
                script.loss_scaled(inputs, result, self.scale_value)
            return result

        def adjusted(self: Any, grads_finite: Any, _adjust: Any = adjust) -> Any:
            result = _adjust(self, grads_finite)
            if script.active:
                script.step_over()
            return result

        kind.scale = functools.wraps(scale)(scaled)
        kind.adjust = functools.wraps(adjust)(adjusted)
