"""The port is RIGHT. torch uses an in-place ReLU, so a hook that keeps a reference shows the conv
output already rectified.

Sources: pytorch#95617, captum#156, thingsvision#44.
"""

from __future__ import annotations

from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": [],
    "stage": "none",
    "cause": "inplace-capture-artifact",
    "note": "no fault: outputs and gradients agree; capture must copy at hook time",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tnn.Conv2d(2, 6, 3, padding=1)
        self.act = tnn.ReLU(inplace=FAULT)
        self.fc = tnn.Linear(6, 3)

    def forward(self, x):
        return self.fc(self.act(self.conv(x)).mean((2, 3)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = mnn.Conv2d(2, 6, 3, pad_mode="pad", padding=1, has_bias=True)
        self.act = mnn.ReLU()
        self.fc = mnn.Dense(6, 3)

    def construct(self, x):
        return self.fc(self.act(self.conv(x)).mean((2, 3)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 2, 6, 6)).astype("float32"),
        "y": generator(2).integers(0, 3, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
