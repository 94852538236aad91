"""Optimizer replaced by its mint twin as advised; on CPU (2.10.0) the call returns True and changes
nothing (in-place add_ is a no-op there).

Source: observed here on MindSpore 2.10.0 CPU; mint.optim documents Ascend only; mindspore-skills
advises mint replacements.
"""

from __future__ import annotations

import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import mint, ops
from mindspore import nn as mnn
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["step1"],
    "stage": "update",
    "cause": "optimizer-step-is-noop",
    "note": "no parameter moves; mint.optim is no replacement on CPU",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = tnn.Linear(6, 12)
        self.l2 = tnn.Linear(12, 3)

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.l1 = mnn.Dense(6, 12)
        self.l2 = mnn.Dense(12, 3)

    def construct(self, x):
        return self.l2(ops.tanh(self.l1(x)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((8, 6)).astype("float32"),
        "y": generator(2).integers(0, 3, 8).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])


STEPS = 2


def opt_torch(net):
    return torch.optim.SGD(net.parameters(), lr=0.01)


def opt_ms(net):
    parameters = list(net.trainable_params())
    return mint.optim.SGD(parameters, lr=0.01) if FAULT else mnn.SGD(parameters, 0.01)
