"""RMSNorm with eps added after the square root.

Sources: EleutherAI/gpt-neox#1345/#1342, clcarwin/SFD_pytorch#3.
"""

from __future__ import annotations

import numpy as np
import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import Parameter, Tensor, ops
from mindspore import nn as mnn
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {"first": ["norm"], "stage": "forward", "cause": "rmsnorm-eps-outside-sqrt"}


class TorchRMSNorm(tnn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = tnn.Parameter(torch.ones(d))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-05)


class MindSporeRMSNorm(mnn.Cell):
    def __init__(self, d):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(d, "float32")))

    def construct(self, x):
        v = (x * x).mean(-1, keep_dims=True)
        return (
            self.weight * x / (ops.sqrt(v) + 1e-05)
            if FAULT
            else self.weight * x * ops.rsqrt(v + 1e-05)
        )


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.emb = tnn.Linear(6, 14)
        self.norm = TorchRMSNorm(14)
        self.fc = tnn.Linear(14, 3)

    def forward(self, x):
        return self.fc(self.norm(0.05 * self.emb(x)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.emb = mnn.Dense(6, 14)
        self.norm = MindSporeRMSNorm(14)
        self.fc = mnn.Dense(14, 3)

    def construct(self, x):
        return self.fc(self.norm(0.05 * self.emb(x)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((6, 6)).astype("float32"),
        "y": generator(2).integers(0, 3, 6).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
