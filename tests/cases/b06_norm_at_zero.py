"""L2 norm of an all-zero row: torch.norm has subgradient 0, MindSpore ops.norm backpropagates NaN.
Forward and loss equal and finite.

Sources: observed here (ops.norm gradient at zero is NaN, torch gives 0); mindyolo#295 is a
related empty-mask NaN.
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
    "first": ["emb.weight", "emb.bias", "emb"],
    "stage": "backward",
    "cause": "norm-gradient-at-zero-nan",
    "note": "first NaN in backward: the norm op; not an overflow",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.emb = tnn.Linear(6, 8, bias=False)
        self.scale = tnn.Linear(1, 3)

    def forward(self, x):
        return self.scale(torch.tanh(self.emb(x)).norm(dim=1, keepdim=True))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.emb = mnn.Dense(6, 8, has_bias=False)
        self.scale = mnn.Dense(1, 3)

    def construct(self, x):
        h = ops.tanh(self.emb(x))
        if FAULT:
            return self.scale(ops.norm(h, dim=1, keepdim=True))
        q = (h * h).sum(1, keepdims=True)
        z = (q == 0).astype(q.dtype)
        return self.scale(ops.sqrt(q + z) * (1 - z))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    x = generator(1).standard_normal((6, 6)).astype("float32")
    x[2] = 0
    return {"x": x, "y": generator(2).integers(0, 3, 6).astype("int32")}


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
