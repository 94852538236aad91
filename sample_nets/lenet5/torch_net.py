"""LeNet-5 in PyTorch: the reference side of the pair."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sample_nets.lenet5.data import CLASSES, MEAN, STD


class LeNet5(nn.Module):
    """Logits (batch, 10) of images (batch, 1, 28, 28)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=5, padding=2)
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=5)
        self.pool2 = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, CLASSES)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool1(self.relu(self.conv1(x)))
        x = self.pool2(self.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def make_net() -> nn.Module:
    """A LeNet-5 with PyTorch's default initialisation, in train mode."""
    return LeNet5()


def loss(net: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The mean cross entropy, a scalar, of normalised images against their labels."""
    logits = net((batch["image"] - MEAN) / STD)
    return F.cross_entropy(logits, batch["label"].long())


def make_optimizer(net: nn.Module) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum over all parameters."""
    return torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
