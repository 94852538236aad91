"""LeNet-5 in MindSpore: the port, with its faults; what each fault means is told in ``faults``."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from sample_nets.fault import check_fault
from sample_nets.lenet5.data import CLASSES, MEAN, STD
from sample_nets.lenet5.faults import FAULTS


class HandWrittenReLU(nn.Cell):
    """The ReLU with a backward pass of its own, whose mask lets every gradient through."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(x)

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * (out >= 0).astype(dout.dtype),)


class LeNet5(nn.Cell):
    """Logits (batch, 10) of images (batch, 1, 28, 28)."""

    def __init__(self, fault: str | None = None) -> None:
        super().__init__()
        self.fault = fault
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2, has_bias=True)
        self.pool1 = nn.MaxPool2d(2, stride=2)
        has_bias = fault != "conv-bias-missing"
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=has_bias)
        self.pool2 = nn.MaxPool2d(2, stride=2)
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, CLASSES)
        self.relu = HandWrittenReLU() if fault == "relu-bprop" else nn.ReLU()
        if fault == "conv1-frozen":
            self.conv1.weight.requires_grad = False

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool1(self.relu(self.conv1(x)))
        x = self.pool2(self.relu(self.conv2(x)))
        if self.fault == "flatten-order":
            x = x.transpose(0, 2, 3, 1)
        if self.fault == "features-detached":
            x = ops.stop_gradient(x)
        x = x.reshape(x.shape[0], -1)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def make_net(fault: str | None = None) -> nn.Cell:
    """A LeNet-5 carrying ``fault``, or none; ValueError for a name ``FAULTS`` does not hold."""
    return LeNet5(check_fault(fault, FAULTS))


def loss(net: nn.Cell, batch: dict[str, Tensor], fault: str | None = None) -> Tensor:
    """The mean cross entropy, a scalar, of normalised images against their labels."""
    mean = 0.0 if fault == "normalise-mean" else MEAN
    logits = net((batch["image"] - mean) / STD)
    if fault == "double-softmax":
        logits = ops.softmax(logits, axis=-1)
    return ops.cross_entropy(logits, batch["label"])


def make_optimizer(net: nn.Cell, fault: str | None = None) -> nn.Optimizer:
    """SGD with Nesterov momentum over all trainable parameters."""
    if fault == "nesterov-ignored":
        return nn.Momentum(net.trainable_params(), 0.02, momentum=0.9, use_nesterov=True)
    return nn.SGD(net.trainable_params(), 0.02, momentum=0.9, nesterov=True)
