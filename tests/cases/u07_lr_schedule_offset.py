"""Warm-up schedule shifted by one step: first update uses lr[1] instead of lr[0]. Steps compare
equal in forward and gradient at step 1.

Source: MindFormers optimizer checklist (draw the lr curve after warm-up).
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
    "first": ["step1"],
    "stage": "update",
    "cause": "lr-schedule-off-by-one",
    "note": "all updates scaled by the same factor lr[s+1]/lr[s]",
}

LR = [0.01, 0.02, 0.03, 0.04, 0.05]


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


STEPS = 3


def opt_torch(net):
    return torch.optim.SGD(net.parameters(), lr=LR[0])


def step_torch(net, optimizer, batch, step):
    for g in optimizer.param_groups:
        g["lr"] = LR[step]
    optimizer.zero_grad()
    loss_torch(net, batch).backward()
    optimizer.step()


def opt_ms(net):
    return mnn.SGD(list(net.trainable_params()), LR[1:] if FAULT else LR)
