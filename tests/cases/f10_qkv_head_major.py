"""Fused QKV: reference is head-major [q|k|v] per head, port splits the whole axis in three. All
shapes equal.

Sources: lablup/mlxcel#928, elixir-nx/bumblebee#204.
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
    "first": ["q_tap", "k_tap", "attn"],
    "stage": "forward",
    "cause": "fused-qkv-layout",
    "note": "qkv itself matches; first divergence is right after the split",
}

H, D = (4, 6)


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = tnn.Linear(24, 72)
        self.attn = TorchTap()
        self.out = tnn.Linear(24, 24)
        self.head = tnn.Linear(24, 5)

    def forward(self, x):
        B, L, _ = x.shape
        q, k, v = self.qkv(x).view(B, L, H, 3 * D).transpose(1, 2).chunk(3, -1)
        a = torch.softmax(q @ k.transpose(-1, -2) / D**0.5, -1) @ v
        return self.head(self.out(self.attn(a.transpose(1, 2).reshape(B, L, 24))).mean(1))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv = mnn.Dense(24, 72)
        self.attn = MindSporeTap()
        self.out = mnn.Dense(24, 24)
        self.head = mnn.Dense(24, 5)

    def construct(self, x):
        B, L, _ = x.shape
        y = self.qkv(x)
        if FAULT:
            q, k, v = [t.reshape(B, L, H, D).swapaxes(1, 2) for t in ops.chunk(y, 3, -1)]
        else:
            q, k, v = ops.chunk(y.reshape(B, L, H, 3 * D).swapaxes(1, 2), 3, -1)
        a = ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / D**0.5, -1), v)
        return self.head(self.out(self.attn(a.swapaxes(1, 2).reshape(B, L, 24))).mean(1))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 7, 24)).astype("float32"),
        "y": generator(2).integers(0, 5, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
