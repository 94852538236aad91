"""A U-Net in PyTorch: the reference side of the pair."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sample_nets.unet.data import CLASSES, IGNORE


class ConvBlock(nn.Module):
    """Two 3x3 convolutions, each with a norm and an activation; height and width stay."""

    def __init__(
        self, in_channels: int, channels: int, norm: type[nn.Module], act: type[nn.Module]
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)
        self.norm1 = norm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = norm(channels)
        self.act = act()

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.norm1(self.conv1(x)))
        return self.act(self.norm2(self.conv2(x)))


class FourGroupNorm(nn.GroupNorm):
    """A group norm in four groups, whatever the number of channels."""

    def __init__(self, channels: int) -> None:
        super().__init__(4, channels)


class ResizeUp(nn.Module):
    """Twice the height and width by bilinear resize, then a 1x1 convolution."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(in_channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return self.project(x)


def transposed_up(in_channels: int, channels: int) -> nn.Module:
    """Twice the height and width by a transposed 3x3 convolution."""
    return nn.ConvTranspose2d(in_channels, channels, 3, stride=2, padding=1, output_padding=1)


class UNet(nn.Module):
    """Logits (batch, 4, 32, 32) of images (batch, 3, 32, 32)."""

    def __init__(self) -> None:
        super().__init__()
        self.enc1 = ConvBlock(3, 8, nn.BatchNorm2d, nn.LeakyReLU)
        self.enc2 = ConvBlock(8, 16, nn.BatchNorm2d, nn.LeakyReLU)
        self.enc3 = ConvBlock(16, 32, nn.BatchNorm2d, nn.LeakyReLU)
        self.pool = nn.MaxPool2d(2)
        self.bottleneck = ConvBlock(32, 64, nn.BatchNorm2d, nn.LeakyReLU)
        self.up3 = transposed_up(64, 32)
        self.dec3 = ConvBlock(64, 32, FourGroupNorm, nn.SiLU)
        self.up2 = transposed_up(32, 16)
        self.dec2 = ConvBlock(32, 16, FourGroupNorm, nn.SiLU)
        self.up1 = ResizeUp(16, 8)
        self.dec1 = ConvBlock(16, 8, FourGroupNorm, nn.SiLU)
        self.head = nn.Conv2d(8, CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip1 = self.enc1(x)
        skip2 = self.enc2(self.pool(skip1))
        skip3 = self.enc3(self.pool(skip2))
        x = self.bottleneck(self.pool(skip3))
        x = self.dec3(torch.cat([self.up3(x), skip3], dim=1))
        x = self.dec2(torch.cat([self.up2(x), skip2], dim=1))
        x = self.dec1(torch.cat([self.up1(x), skip1], dim=1))
        return self.head(x)


def make_net() -> nn.Module:
    """A U-Net with PyTorch's default initialisation, in train mode."""
    return UNet()


def loss(net: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The mean cross entropy, a scalar, over the pixels that are not to be ignored."""
    return F.cross_entropy(net(batch["image"]), batch["mask"].long(), ignore_index=IGNORE)


def make_optimizer(net: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum over all parameters."""
    return torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
