"""Distillation KL with reduction 'mean' (all elements) instead of 'batchmean'.

Source: MindSpore nn.KLDivLoss(reduction=mean) signature.
"""

from __future__ import annotations

import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {"first": ["loss"], "stage": "loss", "cause": "kldiv-reduction"}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = tnn.Linear(6, 12)
        self.fc2 = tnn.Linear(12, 9)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = mnn.Dense(6, 12)
        self.fc2 = mnn.Dense(12, 9)

    def construct(self, x):
        return self.fc2(ops.relu(self.fc1(x)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    p = generator(2).random((5, 9)).astype("float32")
    p /= p.sum(1, keepdims=True)
    return {"x": generator(1).standard_normal((5, 6)).astype("float32"), "y": p}


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.kl_div(F.log_softmax(net(batch["x"]), -1), batch["y"], reduction="batchmean")


def loss_ms(net, batch):
    return ops.kl_div(
        ops.log_softmax(net(batch["x"]), -1), batch["y"], reduction="mean" if FAULT else "batchmean"
    )
