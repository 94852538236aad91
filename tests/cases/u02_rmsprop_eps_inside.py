"""RMSProp with a large eps: inside the square root on one side, outside on the other.

Sources: pytorch#23796, chainer#4754, jax#1427, timm bc264269 (RMSpropTF).
"""

from __future__ import annotations

import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {"first": ["step1"], "stage": "update", "cause": "rmsprop-eps-inside-sqrt"}


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
    return torch.optim.RMSprop(net.parameters(), lr=0.001, alpha=0.9, eps=0.001)


class OutsideRMS:
    def __init__(self, ps):
        self.ps = ps
        self.v = [0.0] * len(ps)

    def __call__(self, gs):
        for i, (p, g) in enumerate(zip(self.ps, gs)):
            self.v[i] = 0.9 * self.v[i] + 0.1 * g * g
            p.set_data(p - 0.001 * g / (ops.sqrt(self.v[i]) + 0.001))


def opt_ms(net):
    parameters = list(net.trainable_params())
    return (
        mnn.RMSProp(parameters, 0.001, decay=0.9, momentum=0.0, epsilon=0.001)
        if FAULT
        else OutsideRMS(parameters)
    )
