"""The mistakes the U-Net's port can carry; where each acts is in ``mindspore_net``."""

from __future__ import annotations

from sample_nets.fault import Fault

# MindSpore 2.10 on CPU leaves a BatchNorm's float16 running statistics as they are.
KNOWN: dict[str, tuple[str, ...]] = {"fp16": ("enc1.norm1",)}

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="leakyrelu-slope",
        first=("enc1.act", "enc1"),
        stage="forward",
        cause="leakyrelu-slope-default",
        summary="nn.LeakyReLU of MindSpore has a default slope of 0.2, PyTorch's is 0.01.",
    ),
    Fault(
        name="encoder-norms-frozen",
        first=("enc1.norm1",),
        stage="forward",
        cause="train-mode-not-set",
        summary="use_batch_statistics=False keeps the encoder's norms on their running statistics.",
    ),
    Fault(
        name="groupnorm-groups",
        first=("dec3.norm1",),
        stage="forward",
        cause="groupnorm-num-groups",
        summary="The decoder's group norms are built with eight groups where four were trained.",
    ),
    Fault(
        name="transpose-output-padding",
        first=("up3",),
        stage="forward",
        cause="conv-transpose-output-padding-kernel",
        summary="output_padding=1 is copied as it is; MindSpore's CPU kernel leaves the edge out.",
        silent=True,
    ),
    Fault(
        name="resize-align-corners",
        first=("up1.project", "up1"),
        stage="forward",
        cause="resize-align-corners",
        summary="The functional bilinear resize is called with align_corners=True.",
        silent=True,
    ),
    Fault(
        name="concat-order",
        first=("dec3.conv1", "dec3"),
        stage="forward",
        cause="concat-order",
        summary="The skip connection comes before the upsampled features; the shapes still fit.",
        silent=True,
    ),
    Fault(
        name="loss-counts-ignored",
        first=("loss",),
        stage="loss",
        cause="loss-denominator-ignore-index",
        summary="The loss is averaged over all pixels, also those that are to be ignored.",
        silent=True,
    ),
    Fault(
        name="skip-detached",
        first=("enc3.act", "enc3.act#1", "enc3"),
        stage="backward",
        cause="stop-gradient-extra",
        summary="The skip connections are detached, so the encoder learns through the pools alone.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="join-bprop",
        first=("up1.project", "up1", "up1.project.weight", "up1.project.bias", "dec1", "(net)"),
        stage="backward",
        cause="custom-bprop-wrong",
        summary="A hand-written concatenation gives each half's gradient to the other half.",
        silent=True,
        backward_only=True,
    ),
)
