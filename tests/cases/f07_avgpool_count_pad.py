"""Average pooling with padding: one side divides by the window size, the other by the real elements;
interior identical, border wrong.

Sources: apple/coremltools#2844, apache/tvm#1144.
"""

from __future__ import annotations

from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {"first": ["pool"], "stage": "forward", "cause": "avgpool-count-include-pad"}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tnn.Conv2d(2, 4, 3, padding=1)
        self.pool = tnn.AvgPool2d(3, 1, 1)
        self.fc = tnn.Linear(4, 3)

    def forward(self, x):
        return self.fc(self.pool(F.relu(self.conv(x))).mean((2, 3)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = mnn.Conv2d(2, 4, 3, pad_mode="pad", padding=1, has_bias=True)
        self.pool = mnn.AvgPool2d(3, 1, pad_mode="pad", padding=1, count_include_pad=not FAULT)
        self.fc = mnn.Dense(4, 3)

    def construct(self, x):
        return self.fc(self.pool(ops.relu(self.conv(x))).mean((2, 3)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 2, 7, 7)).astype("float32"),
        "y": generator(2).integers(0, 3, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
