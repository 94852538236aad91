"""A U-Net in MindSpore: the port, with its faults; what each fault means is told in ``faults``.

The last convolution, ``head`` in the reference, is called ``classifier`` here.
"""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from sample_nets.fault import check_fault
from sample_nets.unet.data import CLASSES, IGNORE
from sample_nets.unet.faults import FAULTS


def make_norm(part: str, channels: int, fault: str | None) -> nn.Cell:
    """The batch norm of the encoder or the group norm of the decoder."""
    if part == "encoder":
        use_batch_statistics = False if fault == "encoder-norms-frozen" else None
        return nn.BatchNorm2d(channels, use_batch_statistics=use_batch_statistics)
    groups = 8 if fault == "groupnorm-groups" else 4
    return nn.GroupNorm(groups, channels)


def make_act(part: str, fault: str | None) -> nn.Cell:
    """The leaky ReLU of the encoder or the SiLU of the decoder."""
    if part == "decoder":
        return nn.SiLU()
    return nn.LeakyReLU() if fault == "leakyrelu-slope" else nn.LeakyReLU(alpha=0.01)


class ConvBlock(nn.Cell):
    """Two 3x3 convolutions, each with a norm and an activation; height and width stay."""

    def __init__(self, in_channels: int, channels: int, part: str, fault: str | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, pad_mode="pad", padding=1)
        self.norm1 = make_norm(part, channels, fault)
        self.conv2 = nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1)
        self.norm2 = make_norm(part, channels, fault)
        self.act = make_act(part, fault)

    def construct(self, x: Tensor) -> Tensor:
        x = self.act(self.norm1(self.conv1(x)))
        return self.act(self.norm2(self.conv2(x)))


class ResizeUp(nn.Cell):
    """Twice the height and width by bilinear resize, then a 1x1 convolution."""

    def __init__(self, in_channels: int, channels: int, fault: str | None) -> None:
        super().__init__()
        self.align_corners = fault == "resize-align-corners"
        self.project = nn.Conv2d(in_channels, channels, 1, pad_mode="valid", has_bias=True)

    def construct(self, x: Tensor) -> Tensor:
        size = (x.shape[2] * 2, x.shape[3] * 2)
        x = ops.interpolate(x, size=size, mode="bilinear", align_corners=self.align_corners)
        return self.project(x)


def transposed_up(in_channels: int, channels: int, fault: str | None) -> nn.Cell:
    """Twice the height and width by a transposed 3x3 convolution."""
    if fault == "transpose-output-padding":
        return nn.Conv2dTranspose(
            in_channels, channels, 3, 2, pad_mode="pad", padding=1, output_padding=1, has_bias=True
        )
    # MindSpore fills the row and column that output_padding adds with the bias alone; padding
    # less at the far edges computes them, as PyTorch does.
    return nn.Conv2dTranspose(
        in_channels, channels, 3, 2, pad_mode="pad", padding=(1, 0, 1, 0), has_bias=True
    )


class Join(nn.Cell):
    """Upsampled features, then those of the skip connection, along the channels."""

    def construct(self, upsampled: Tensor, skip: Tensor) -> Tensor:
        return ops.cat((upsampled, skip), axis=1)


class JoinWithBprop(nn.Cell):
    """The same join with a backward pass that hands each half's gradient to the other half."""

    def construct(self, upsampled: Tensor, skip: Tensor) -> Tensor:
        return ops.cat((upsampled, skip), axis=1)

    def bprop(
        self, upsampled: Tensor, skip: Tensor, out: Tensor, dout: Tensor
    ) -> tuple[Tensor, Tensor]:
        channels = skip.shape[1]
        return dout[:, channels:], dout[:, :channels]


class UNet(nn.Cell):
    """Logits (batch, 4, 32, 32) of images (batch, 3, 32, 32)."""

    def __init__(self, fault: str | None = None) -> None:
        super().__init__()
        self.fault = fault
        self.enc1 = ConvBlock(3, 8, "encoder", fault)
        self.enc2 = ConvBlock(8, 16, "encoder", fault)
        self.enc3 = ConvBlock(16, 32, "encoder", fault)
        self.pool = nn.MaxPool2d(2, stride=2)
        self.bottleneck = ConvBlock(32, 64, "encoder", fault)
        self.up3 = transposed_up(64, 32, fault)
        self.dec3 = ConvBlock(64, 32, "decoder", fault)
        self.up2 = transposed_up(32, 16, fault)
        self.dec2 = ConvBlock(32, 16, "decoder", fault)
        self.up1 = ResizeUp(16, 8, fault)
        self.dec1 = ConvBlock(16, 8, "decoder", fault)
        self.join = JoinWithBprop() if fault == "join-bprop" else Join()
        self.classifier = nn.Conv2d(8, CLASSES, 1, pad_mode="valid", has_bias=True)

    def construct(self, x: Tensor) -> Tensor:
        skip1 = self.enc1(x)
        skip2 = self.enc2(self.pool(skip1))
        skip3 = self.enc3(self.pool(skip2))
        x = self.bottleneck(self.pool(skip3))
        x = self.dec3(self._concatenate(self.up3(x), skip3))
        x = self.dec2(self._concatenate(self.up2(x), skip2))
        x = self.dec1(self._concatenate(self.up1(x), skip1))
        return self.classifier(x)

    def _concatenate(self, upsampled: Tensor, skip: Tensor) -> Tensor:
        if self.fault == "concat-order":
            return self.join(skip, upsampled)
        if self.fault == "skip-detached":
            skip = ops.stop_gradient(skip)
        return self.join(upsampled, skip)


def make_net(fault: str | None = None) -> nn.Cell:
    """A U-Net carrying ``fault``, or none; ValueError for a name that ``FAULTS`` does not hold."""
    return UNet(check_fault(fault, FAULTS))


def loss(net: nn.Cell, batch: dict[str, Tensor], fault: str | None = None) -> Tensor:
    """The mean cross entropy, a scalar, over the pixels that are not to be ignored."""
    logits, mask = net(batch["image"]), batch["mask"]
    if fault == "loss-counts-ignored":
        return ops.cross_entropy(logits, mask, ignore_index=IGNORE, reduction="none").mean()
    return ops.cross_entropy(logits, mask, ignore_index=IGNORE)


def make_optimizer(net: nn.Cell, fault: str | None = None) -> nn.Optimizer:
    """SGD with momentum over all trainable parameters."""
    return nn.Momentum(net.trainable_params(), 0.05, momentum=0.9)
