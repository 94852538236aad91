"""LayerNorm default epsilon (1e-7 vs 1e-5) on low-variance activations.

Sources: mindspore-lab/mindone#225, mindspore-skills accuracy-agent demo.
"""

from __future__ import annotations

from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {"first": ["norm"], "stage": "forward", "cause": "layernorm-eps-default"}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.emb = tnn.Linear(12, 16)
        self.norm = tnn.LayerNorm(16)
        self.head = tnn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.norm(self.emb(x) * 0.01))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.emb = mnn.Dense(12, 16)
        self.norm = mnn.LayerNorm((16,)) if FAULT else mnn.LayerNorm((16,), epsilon=1e-05)
        self.head = mnn.Dense(16, 5)

    def construct(self, x):
        return self.head(self.norm(self.emb(x) * 0.01))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((6, 12)).astype("float32"),
        "y": generator(2).integers(0, 5, 6).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
