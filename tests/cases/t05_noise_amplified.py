"""The port is RIGHT. A steep function (sin of a large argument) amplifies last-bit differences of
the previous layer by ~1e4.

Sources: mindspore#328 (batch size changes output), Paddle#45780 (diff triples per layer).
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
    "first": [],
    "stage": "none",
    "cause": "noise-amplified",
    "note": "replaying the steep layer on the reference input agrees: conditioning, not a fault",
}


class TorchSin(tnn.Module):
    def forward(self, x):
        return torch.sin(x)


class MindSporeSin(mnn.Cell):
    def construct(self, x):
        return ops.sin(x)


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = tnn.Linear(64, 32)
        self.norm = tnn.LayerNorm(32)
        self.fc2 = tnn.Linear(32, 16)
        self.act = TorchSin()
        self.head = tnn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.act((30000.0 if FAULT else 1.0) * self.fc2(self.norm(self.fc1(x)))))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = mnn.Dense(64, 32)
        self.norm = mnn.LayerNorm((32,), epsilon=1e-05)
        self.fc2 = mnn.Dense(32, 16)
        self.act = MindSporeSin()
        self.head = mnn.Dense(16, 3)

    def construct(self, x):
        return self.head(self.act((30000.0 if FAULT else 1.0) * self.fc2(self.norm(self.fc1(x)))))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((6, 64)).astype("float32"),
        "y": generator(2).integers(0, 3, 6).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
