"""ResNet-50 in MindSpore: the port, with its faults; what each fault means is told in ``faults``.

The shortcut's layers are called ``down_sample_layer`` here, as in MindSpore's model collections.
"""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from sample_nets.fault import check_fault
from sample_nets.resnet50.data import CLASSES
from sample_nets.resnet50.faults import FAULTS

BASE_WIDTH = 8
DEPTHS = (3, 4, 6, 3)
EXPANSION = 4


def batch_norm(channels: int, fault: str | None, eps: float = 1e-5) -> nn.BatchNorm2d:
    """A batch norm whose running statistics move by a tenth of the way at each step."""
    momentum = 0.1 if fault == "bn-momentum" else 0.9
    return nn.BatchNorm2d(channels, eps=eps, momentum=momentum)


class MeanPoolWithBprop(nn.Cell):
    """The mean over height and width, whose backward pass forgets to divide by their product."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.mean(x, (2, 3), True)

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (ops.broadcast_to(dout, x.shape),)


class Bottleneck(nn.Cell):
    """Three convolutions and a shortcut, (b, c, h, w) to (b, 4 width, h / stride, w / stride)."""

    def __init__(self, in_channels: int, width: int, stride: int, fault: str | None) -> None:
        super().__init__()
        self.fault = fault
        out_channels = width * EXPANSION
        first_stride, second_stride = 1, stride
        if fault == "stride-on-first-conv":
            first_stride, second_stride = stride, 1
        self.conv1 = nn.Conv2d(in_channels, width, 1, stride=first_stride, pad_mode="valid")
        self.bn1 = batch_norm(width, fault)
        if fault == "conv-same-padding":
            self.conv2 = nn.Conv2d(width, width, 3, stride=second_stride, pad_mode="same")
        else:
            self.conv2 = nn.Conv2d(width, width, 3, stride=second_stride, pad_mode="pad", padding=1)
        self.bn2 = batch_norm(width, fault)
        self.conv3 = nn.Conv2d(width, out_channels, 1, pad_mode="valid")
        self.bn3 = batch_norm(out_channels, fault)
        self.relu = nn.ReLU()
        self.down_sample_layer = None
        if stride != 1 or in_channels != out_channels:
            eps = 1e-3 if fault == "shortcut-bn-eps" else 1e-5
            self.down_sample_layer = nn.SequentialCell(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, pad_mode="valid"),
                batch_norm(out_channels, fault, eps),
            )

    def construct(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.down_sample_layer is not None:
            identity = self.down_sample_layer(x)
        elif self.fault == "identity-detached":
            identity = ops.stop_gradient(identity)
        return self.relu(out + identity)


class ResNet(nn.Cell):
    """Logits (batch, 10) of images (batch, 3, 48, 48)."""

    def __init__(self, depths: tuple[int, ...] = DEPTHS, fault: str | None = None) -> None:
        super().__init__()
        self.in_channels = BASE_WIDTH
        self.fault = fault
        self.conv1 = nn.Conv2d(3, BASE_WIDTH, 7, stride=2, pad_mode="pad", padding=3)
        self.bn1 = batch_norm(BASE_WIDTH, fault)
        self.relu = nn.ReLU()
        if fault == "maxpool-same-padding":
            self.maxpool = nn.MaxPool2d(3, stride=2, pad_mode="same")
        else:
            self.maxpool = nn.MaxPool2d(3, stride=2, pad_mode="pad", padding=1)
        self.layer1 = self._make_layer(BASE_WIDTH, depths[0], stride=1)
        self.layer2 = self._make_layer(BASE_WIDTH * 2, depths[1], stride=2)
        self.layer3 = self._make_layer(BASE_WIDTH * 4, depths[2], stride=2)
        self.layer4 = self._make_layer(BASE_WIDTH * 8, depths[3], stride=2)
        self.avgpool = MeanPoolWithBprop() if fault == "avgpool-bprop" else nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Dense(self.in_channels, CLASSES)

    def _make_layer(self, width: int, depth: int, stride: int) -> nn.SequentialCell:
        blocks = []
        for index in range(depth):
            first_stride = stride if index == 0 else 1
            blocks.append(Bottleneck(self.in_channels, width, first_stride, self.fault))
            self.in_channels = width * EXPANSION
        return nn.SequentialCell(*blocks)

    def construct(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.avgpool(x)
        return self.fc(x.reshape(x.shape[0], -1))


def make_net(fault: str | None = None) -> nn.Cell:
    """A ResNet-50 carrying ``fault``, or none; ValueError for a name ``FAULTS`` does not hold."""
    check_fault(fault, FAULTS)
    depths = (3, 4, 5, 3) if fault == "block-missing" else DEPTHS
    return ResNet(depths, fault)


def loss(net: nn.Cell, batch: dict[str, Tensor], fault: str | None = None) -> Tensor:
    """The mean cross entropy, a scalar, with labels smoothed by 0.1."""
    smoothing = 0.0 if fault == "label-smoothing-missing" else 0.1
    return ops.cross_entropy(net(batch["image"]), batch["label"], label_smoothing=smoothing)


def make_optimizer(net: nn.Cell, fault: str | None = None) -> nn.Optimizer:
    """SGD with momentum and a weight decay on every parameter, the norms' included."""
    if fault == "weight-decay-skips-norms":
        return nn.Momentum(net.trainable_params(), 0.002, momentum=0.9, weight_decay=5e-3)
    # Without an explicit group MindSpore leaves out every parameter called beta or gamma.
    group = {"params": net.trainable_params(), "weight_decay": 5e-3}
    return nn.Momentum([group], 0.002, momentum=0.9)
