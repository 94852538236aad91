"""A stage iterates once instead of over its repeat list: two blocks exist only in the reference.

Sources: mindcv 13df976 (shufflenet stage loop), ce6f675 (ghostnet config nesting).
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
    "first": ["stage.1", "stage.2", "head"],
    "stage": "structure",
    "cause": "missing-blocks",
    "note": "structure check first: 2 unmatched torch layers; then head's input differs",
}


class TorchNet(tnn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.stem = tnn.Linear(6, 12)
        self.stage = tnn.ModuleList([tnn.Linear(12, 12) for _ in range(n)])
        self.head = tnn.Linear(12, 3)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for b in self.stage:
            x = x + torch.relu(b(x))
        return self.head(x)


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = mnn.Dense(6, 12)
        self.stage = mnn.CellList([mnn.Dense(12, 12) for _ in range(1 if FAULT else 3)])
        self.head = mnn.Dense(12, 3)

    def construct(self, x):
        x = ops.relu(self.stem(x))
        for b in self.stage:
            x = x + ops.relu(b(x))
        return self.head(x)


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((5, 6)).astype("float32"),
        "y": generator(2).integers(0, 3, 5).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
