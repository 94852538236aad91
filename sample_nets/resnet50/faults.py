"""The mistakes ResNet-50's port can carry; where each acts is in ``mindspore_net``."""

from __future__ import annotations

from sample_nets.fault import Fault

# MindSpore 2.10 on CPU leaves a BatchNorm's float16 running statistics as they are.
KNOWN: dict[str, tuple[str, ...]] = {"fp16": ("bn1",)}

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="block-missing",
        first=("layer3.5", "layer3", "layer4.0", "layer4.0.conv1", "layer4"),
        stage="structure",
        cause="missing-blocks",
        summary="The third stage is built with five blocks where the reference has six.",
    ),
    Fault(
        name="maxpool-same-padding",
        first=("maxpool",),
        stage="forward",
        cause="maxpool-same-vs-symmetric-padding",
        summary="pad_mode='same' pads a stride-2 window at the far edge only; PyTorch pads both.",
    ),
    Fault(
        name="conv-same-padding",
        first=("layer2.0.conv2",),
        stage="forward",
        cause="conv-same-vs-symmetric-padding",
        summary="MindSpore's default pad_mode is left for the 3x3 convolutions, wrong at stride 2.",
    ),
    Fault(
        name="stride-on-first-conv",
        first=("layer2.0.conv1",),
        stage="forward",
        cause="conv-stride-position",
        summary="The original ResNet strides the 1x1 convolution, the reference the 3x3 one.",
    ),
    Fault(
        name="shortcut-bn-eps",
        first=("layer1.0.downsample.1",),
        stage="forward",
        cause="batchnorm-eps",
        summary="The shortcut's batch norms are built with an eps of 1e-3, another framework's.",
    ),
    Fault(
        name="label-smoothing-missing",
        first=("loss",),
        stage="loss",
        cause="label-smoothing",
        summary="The port's cross entropy is called without the reference's label smoothing.",
        silent=True,
    ),
    Fault(
        name="identity-detached",
        first=("layer4.1", "layer4.1.relu", "layer4.1.relu#2", "layer4.2", "layer4"),
        stage="backward",
        cause="stop-gradient-extra",
        summary="The identity shortcut is detached, so only the convolutions carry gradient back.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="avgpool-bprop",
        first=("avgpool", "layer4.2.relu", "layer4.2.relu#2", "layer4.2", "layer4", "(net)"),
        stage="backward",
        cause="custom-bprop-wrong",
        summary="A hand-written pooling's backward pass forgets to divide by the window's size.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="bn-momentum",
        first=("bn1.running_mean", "bn1.running_var", "bn1"),
        stage="running-stats",
        cause="bn-momentum-convention",
        summary="PyTorch's momentum of 0.1 is copied, which is 0.9 in MindSpore's convention.",
    ),
    Fault(
        name="weight-decay-skips-norms",
        first=("step1", "step1:bn1.weight", "step1:bn1.bias"),
        stage="update",
        cause="weight-decay-groups",
        summary="Ungrouped MindSpore optimizers leave beta and gamma without weight decay.",
        silent=True,
    ),
)
