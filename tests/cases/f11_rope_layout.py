"""Rotary embedding: reference pairs (2i,2i+1), port rotates halves with unpermuted weights. q_proj
matches, first token (position 0) matches, rest does not.

Sources: huggingface/transformers#25199, karpathy/nanochat#264.
"""

from __future__ import annotations

import numpy as np
import torch
from caselib import (
    MindSporeTap,
    TorchTap,
    copy_by_name,
    fault_is_on,
    generator,
    mindspore_tensor,
    randomize,
    torch_tensor,
)
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {"first": ["q_rot", "rope"], "stage": "forward", "cause": "rope-interleaved-vs-half"}

D = 8


def tables(L):
    f = 1.0 / 100.0 ** (np.arange(0, D, 2) / D)
    a = np.outer(np.arange(L), f)
    return (np.cos(a).astype("float32"), np.sin(a).astype("float32"))


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = tnn.Linear(12, D)
        self.k_proj = tnn.Linear(12, D)
        self.v_proj = tnn.Linear(12, D)
        self.q_rot = TorchTap()
        self.k_rot = TorchTap()
        self.head = tnn.Linear(D, 4)

    def rot(self, x):
        c, n = map(torch_tensor, tables(x.shape[1]))
        a, b = (x[..., 0::2], x[..., 1::2])
        return torch.stack([a * c - b * n, a * n + b * c], -1).flatten(-2)

    def forward(self, x):
        q, k, v = (
            self.q_rot(self.rot(self.q_proj(x))),
            self.k_rot(self.rot(self.k_proj(x))),
            self.v_proj(x),
        )
        return self.head((torch.softmax(q @ k.transpose(1, 2) / D**0.5, -1) @ v).mean(1))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.q_proj = mnn.Dense(12, D)
        self.k_proj = mnn.Dense(12, D)
        self.v_proj = mnn.Dense(12, D)
        self.q_rot = MindSporeTap()
        self.k_rot = MindSporeTap()
        self.head = mnn.Dense(D, 4)

    def rot(self, x):
        c, n = map(mindspore_tensor, tables(x.shape[1]))
        if FAULT:
            a, b = (x[..., : D // 2], x[..., D // 2 :])
            return ops.cat((a * c - b * n, a * n + b * c), -1)
        a, b = (x[..., 0::2], x[..., 1::2])
        return ops.stack((a * c - b * n, a * n + b * c), -1).reshape(x.shape)

    def construct(self, x):
        q, k, v = (
            self.q_rot(self.rot(self.q_proj(x))),
            self.k_rot(self.rot(self.k_proj(x))),
            self.v_proj(x),
        )
        return self.head(
            ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(1, 2)) / D**0.5, -1), v).mean(1)
        )


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 6, 12)).astype("float32"),
        "y": generator(2).integers(0, 4, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
