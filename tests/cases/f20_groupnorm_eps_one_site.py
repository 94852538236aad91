"""Only one of three GroupNorms uses another eps in the reference (1e-6); the port takes the
framework default everywhere.

Source: ml-explore/mlx-examples#1435, MegDiffusion#5.
"""

from __future__ import annotations

from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["tnorm"],
    "stage": "forward",
    "cause": "groupnorm-eps-site",
    "note": "~1e-6..1e-5 relative; survives rtol 1e-3",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tnn.Conv2d(3, 8, 3, padding=1)
        self.n1 = tnn.GroupNorm(4, 8)
        self.tnorm = tnn.GroupNorm(4, 8, eps=1e-06)
        self.n2 = tnn.GroupNorm(4, 8)
        self.c2 = tnn.Conv2d(8, 8, 1)
        self.head = tnn.Linear(8, 3)

    def forward(self, x):
        h = F.silu(self.n1(self.conv(x)))
        h = h + self.c2(self.tnorm(0.3 * h))
        return self.head(self.n2(h).pow(2).mean((2, 3)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = mnn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.n1 = mnn.GroupNorm(4, 8)
        self.tnorm = mnn.GroupNorm(4, 8) if FAULT else mnn.GroupNorm(4, 8, eps=1e-06)
        self.n2 = mnn.GroupNorm(4, 8)
        self.c2 = mnn.Conv2d(8, 8, 1, has_bias=True)
        self.head = mnn.Dense(8, 3)

    def construct(self, x):
        h = ops.silu(self.n1(self.conv(x)))
        h = h + self.c2(self.tnorm(0.3 * h))
        g = self.n2(h)
        return self.head((g * g).mean((2, 3)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 3, 8, 8)).astype("float32"),
        "y": generator(2).integers(0, 3, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
