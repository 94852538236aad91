"""The mistakes LeNet-5's port can carry; where each acts is in ``mindspore_net``."""

from __future__ import annotations

from sample_nets.fault import Fault

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="normalise-mean",
        first=("inputs:image", "inputs:x", "inputs", "(net)", "conv1"),
        stage="input-data",
        cause="normalise-mean",
        summary="The port divides by the deviation but forgets to subtract the mean.",
        silent=True,
    ),
    Fault(
        name="conv-bias-missing",
        first=("conv2", "conv2.bias"),
        stage="structure",
        cause="conv-bias-missing",
        summary="nn.Conv2d of MindSpore has no bias unless has_bias=True is given.",
    ),
    Fault(
        name="flatten-order",
        first=("fc1", "(net)"),
        stage="forward",
        cause="flatten-order",
        summary="Features are flattened channels last, the order the weights were not trained for.",
        silent=True,
    ),
    Fault(
        name="double-softmax",
        first=("loss",),
        stage="loss",
        cause="double-softmax",
        summary="A softmax is left before a cross entropy that expects logits.",
        silent=True,
    ),
    Fault(
        name="features-detached",
        first=("pool2", "(net)"),
        stage="backward",
        cause="stop-gradient-extra",
        summary="A stop_gradient from a fine-tuning recipe cuts the convolutions off the loss.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="relu-bprop",
        first=("relu", "relu#3", "fc2", "fc2.weight", "fc2.bias", "(net)"),
        stage="backward",
        cause="custom-bprop-wrong",
        summary="A hand-written ReLU masks its gradient by output >= 0, so nothing is masked.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="conv1-frozen",
        first=("conv1.weight", "conv1"),
        stage="structure",
        cause="parameter-frozen",
        summary="requires_grad=False survives from a pretraining script, so conv1 never learns.",
        backward_only=True,
    ),
    Fault(
        name="nesterov-ignored",
        first=("step1",),
        stage="update",
        cause="nesterov-ignored",
        summary="nn.Momentum takes use_nesterov=True and on a CPU still does plain momentum.",
    ),
)
