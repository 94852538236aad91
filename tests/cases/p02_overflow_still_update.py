"""Half-precision gradient overflows; the reference skips the step, the port applies it anyway
(inf/NaN weights).

Sources: mindyolo#441 (overflow, still update), mindyolo#325 (same switch; there the advice went
the other way, so report the policy difference, not a winner), mindcv 0ca6d08.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import Tensor, ops
from mindspore import nn as mnn
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["step1"],
    "stage": "loss-scale",
    "cause": "update-despite-overflow",
    "note": "both sides see non-finite gradients; only the skip decision differs",
}

SCALE = float(2**24)


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = tnn.Linear(6, 12)
        self.l2 = tnn.Linear(12, 3)

    def forward(self, x):
        return self.l2(torch.relu(self.l1(x)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.l1 = mnn.Dense(6, 12)
        self.l2 = mnn.Dense(12, 3)

    def construct(self, x):
        return self.l2(ops.relu(self.l1(x)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((8, 6)).astype("float32"),
        "y": generator(2).integers(0, 3, 8).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])


STEPS = 2


def opt_torch(net):
    return torch.optim.SGD(net.parameters(), lr=0.2)


def opt_ms(net):
    return mnn.SGD(list(net.trainable_params()), 0.2)


def _half(g, sc):
    with np.errstate(over="ignore"):
        return [(x * sc).astype("float16").astype("float32") / np.float32(sc) for x in g]


def step_torch(net, optimizer, batch, step):
    optimizer.zero_grad()
    loss_torch(net, batch).backward()
    g = _half([p.grad.numpy() for p in net.parameters()], SCALE if step == 0 else 1024.0)
    if all(np.isfinite(x).all() for x in g):
        for p, x in zip(net.parameters(), g):
            p.grad = torch.from_numpy(x)
        optimizer.step()


def step_ms(net, optimizer, batch, step):
    _, g = ms.value_and_grad(lambda: loss_ms(net, batch), None, list(net.trainable_params()))()
    g = _half([x.asnumpy() for x in g], SCALE if step == 0 else 1024.0)
    if FAULT or all(np.isfinite(x).all() for x in g):
        optimizer(tuple(Tensor(x) for x in g))
