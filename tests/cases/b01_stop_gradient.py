"""A stop_gradient left in the port: values equal, everything upstream of it gets no gradient from
that branch.

Source: MindInsight accuracy checklist cg.02 (stop_gradient).
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
    "first": ["enc2.weight", "enc2.bias", "enc2"],
    "stage": "backward",
    "cause": "stop-gradient-extra",
    "note": "first wrong gradient walking back from the loss is enc2 (head is right)",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = tnn.Linear(8, 16)
        self.enc2 = tnn.Linear(16, 16)
        self.gate = tnn.Linear(8, 16)
        self.head = tnn.Linear(16, 3)

    def forward(self, x):
        return self.head(
            torch.sigmoid(self.gate(x)) * torch.tanh(self.enc2(torch.tanh(self.enc1(x))))
        )


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.enc1 = mnn.Dense(8, 16)
        self.enc2 = mnn.Dense(16, 16)
        self.gate = mnn.Dense(8, 16)
        self.head = mnn.Dense(16, 3)

    def construct(self, x):
        h = ops.tanh(self.enc2(ops.tanh(self.enc1(x))))
        if FAULT:
            h = ops.stop_gradient(h)
        return self.head(ops.sigmoid(self.gate(x)) * h)


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((6, 8)).astype("float32"),
        "y": generator(2).integers(0, 3, 6).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
