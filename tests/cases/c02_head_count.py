"""Attention head count differs (8-dim heads vs 4-dim heads); every parameter shape is identical.

Source: MindFormers structure checklist (num_heads, n_kv_heads).
"""

from __future__ import annotations

import torch
from caselib import MindSporeTap, TorchTap, copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["attn"],
    "stage": "config",
    "cause": "num-heads-mismatch",
    "note": "q,k,v projections agree; shapes agree everywhere visible",
}


class TorchNet(tnn.Module):
    def __init__(self, h=2):
        super().__init__()
        self.h = h
        self.q = tnn.Linear(16, 16)
        self.k = tnn.Linear(16, 16)
        self.v = tnn.Linear(16, 16)
        self.attn = TorchTap()
        self.o = tnn.Linear(16, 3)

    def forward(self, x):
        B, L, D = x.shape
        f = lambda t: t.view(B, L, self.h, -1).transpose(1, 2)
        q, k, v = (f(self.q(x)), f(self.k(x)), f(self.v(x)))
        a = torch.softmax(q @ k.transpose(-1, -2) / (D // self.h) ** 0.5, -1) @ v
        return self.o(self.attn(a.transpose(1, 2).reshape(B, L, D)).mean(1))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.h = 4 if FAULT else 2
        self.q = mnn.Dense(16, 16)
        self.k = mnn.Dense(16, 16)
        self.v = mnn.Dense(16, 16)
        self.attn = MindSporeTap()
        self.o = mnn.Dense(16, 3)

    def construct(self, x):
        B, L, D = x.shape
        f = lambda t: t.reshape(B, L, self.h, -1).swapaxes(1, 2)
        q, k, v = (f(self.q(x)), f(self.k(x)), f(self.v(x)))
        a = ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / (D // self.h) ** 0.5, -1), v)
        return self.o(self.attn(a.swapaxes(1, 2).reshape(B, L, D)).mean(1))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 5, 16)).astype("float32"),
        "y": generator(2).integers(0, 3, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
