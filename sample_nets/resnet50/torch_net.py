"""ResNet-50 in PyTorch: the reference side of the pair."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sample_nets.resnet50.data import CLASSES

BASE_WIDTH = 8
DEPTHS = (3, 4, 6, 3)
EXPANSION = 4


class Bottleneck(nn.Module):
    """Three convolutions and a shortcut, (b, c, h, w) to (b, 4 width, h / stride, w / stride)."""

    def __init__(self, in_channels: int, width: int, stride: int) -> None:
        super().__init__()
        out_channels = width * EXPANSION
        self.conv1 = nn.Conv2d(in_channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out_channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or in_channels != out_channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """Logits (batch, 10) of images (batch, 3, 48, 48)."""

    def __init__(self, depths: tuple[int, ...] = DEPTHS) -> None:
        super().__init__()
        self.in_channels = BASE_WIDTH
        self.conv1 = nn.Conv2d(3, BASE_WIDTH, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(BASE_WIDTH)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(BASE_WIDTH, depths[0], stride=1)
        self.layer2 = self._make_layer(BASE_WIDTH * 2, depths[1], stride=2)
        self.layer3 = self._make_layer(BASE_WIDTH * 4, depths[2], stride=2)
        self.layer4 = self._make_layer(BASE_WIDTH * 8, depths[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(self.in_channels, CLASSES)
        self._initialise()

    def _make_layer(self, width: int, depth: int, stride: int) -> nn.Sequential:
        blocks = []
        for index in range(depth):
            blocks.append(Bottleneck(self.in_channels, width, stride if index == 0 else 1))
            self.in_channels = width * EXPANSION
        return nn.Sequential(*blocks)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if isinstance(module, Bottleneck):
                # Blocks start near the identity: at 1 so deep a net amplifies rounding into a gap
                # of the loss within two steps; at 0 a block's convolutions would not learn.
                nn.init.constant_(module.bn3.weight, 0.25)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def make_net() -> nn.Module:
    """A ResNet-50 of base width 8 initialised for training from scratch, in train mode."""
    return ResNet()


def loss(net: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The mean cross entropy, a scalar, with labels smoothed by 0.1."""
    return F.cross_entropy(net(batch["image"]), batch["label"].long(), label_smoothing=0.1)


def make_optimizer(net: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum and a weight decay on every parameter, the norms' included."""
    return torch.optim.SGD(net.parameters(), lr=0.002, momentum=0.9, weight_decay=5e-3)
