"""where(mask, log(x), 0) written after the log instead of before it: value fine, gradient 0*inf =
NaN.

Sources: constructed; related NaN repairs: mindnlp 6d487458c.
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
    "first": ["fc.weight", "fc.bias", "fc"],
    "stage": "backward",
    "cause": "where-after-log-nan-gradient",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.fc = tnn.Linear(5, 7)
        self.head = tnn.Linear(7, 3)

    def forward(self, x):
        h = torch.exp(self.fc(x[:, :5])) * x[:, 5:]
        ok = h > 0
        return self.head(
            torch.where(ok, torch.log(torch.where(ok, h, torch.ones_like(h))), torch.zeros_like(h))
        )


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = mnn.Dense(5, 7)
        self.head = mnn.Dense(7, 3)

    def construct(self, x):
        h = ops.exp(self.fc(x[:, :5])) * x[:, 5:]
        ok = h > 0
        z = ops.zeros_like(h)
        if FAULT:
            return self.head(ops.where(ok, ops.log(h), z))
        return self.head(ops.where(ok, ops.log(ops.where(ok, h, ops.ones_like(h))), z))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    x = generator(1).standard_normal((6, 6)).astype("float32")
    x[:, 5] = [1, 1, 0, 1, 0, 1]
    return {"x": x, "y": generator(2).integers(0, 3, 6).astype("int32")}


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
