"""Output head tied to the embedding in the reference, copied but not tied in the port: first forward
equal, gradients and every later step differ.

Sources: vllm#5621, transformers#43429, ms-swift#3530.
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
    "first": ["tok.weight", "tok", "head.weight", "head"],
    "stage": "structure",
    "cause": "weight-tying-lost",
    "note": "torch has one tensor under two names; MindSpore has two parameters",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.tok = tnn.Embedding(25, 12)
        self.fc = tnn.Linear(12, 12)
        self.head = tnn.Linear(12, 25, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, i):
        return self.head(torch.tanh(self.fc(self.tok(i.long()))))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.tok = mnn.Embedding(25, 12)
        self.fc = mnn.Dense(12, 12)
        self.head = mnn.Dense(12, 25, has_bias=False)
        if not FAULT:
            self.head.weight = self.tok.embedding_table

    def construct(self, i):
        return self.head(ops.tanh(self.fc(self.tok(i))))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).integers(0, 25, (3, 6)).astype("int32"),
        "y": generator(2).integers(0, 25, (3, 6)).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]).flatten(0, 1), batch["y"].long().flatten())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]).reshape(-1, 25), batch["y"].reshape(-1))


STEPS = 2


def opt_torch(net):
    return torch.optim.SGD(net.parameters(), lr=0.1)


def opt_ms(net):
    return mnn.SGD(list(net.trainable_params()), 0.1)
