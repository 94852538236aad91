"""One square projection copied without the needed transpose (checkpoint stored it (in,out)); shape
check cannot see it.

Source: constructed (no single report read).
"""

from __future__ import annotations

import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["l2"],
    "stage": "forward",
    "cause": "weight-transposed-square",
    "note": "a parameter comparison names l2.weight even before any forward",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = tnn.Linear(7, 20)
        self.l2 = tnn.Linear(20, 20)
        self.l3 = tnn.Linear(20, 20)
        self.head = tnn.Linear(20, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.l3(torch.tanh(self.l2(torch.tanh(self.l1(x)))))))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.l1 = mnn.Dense(7, 20)
        self.l2 = mnn.Dense(20, 20)
        self.l3 = mnn.Dense(20, 20)
        self.head = mnn.Dense(20, 3)

    def construct(self, x):
        return self.head(ops.tanh(self.l3(ops.tanh(self.l2(ops.tanh(self.l1(x)))))))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((5, 7)).astype("float32"),
        "y": generator(2).integers(0, 3, 5).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(
        torch_net, mindspore_net, edit=lambda k, a: a.T.copy() if FAULT and k == "l2.weight" else a
    )


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
