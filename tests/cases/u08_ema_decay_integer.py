"""Weight EMA whose warm-up exponent is an integer division, so the decay stays 0 and EMA just equals
the weights.

Source: mindcv dbc49e7 (EMA counter int32 -> float32).
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["state:ema"],
    "stage": "state",
    "cause": "ema-counter-integer",
    "note": "weights agree at every step; only the EMA copy differs",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = tnn.Linear(6, 12)
        self.l2 = tnn.Linear(12, 3)

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.l1 = mnn.Dense(6, 12)
        self.l2 = mnn.Dense(12, 3)

    def construct(self, x):
        return self.l2(ops.tanh(self.l1(x)))


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


STEPS = 4


def opt_torch(net):
    net.ema = net.l1.weight.detach().clone()
    return torch.optim.SGD(net.parameters(), lr=0.2)


def opt_ms(net):
    net.ema = net.l1.weight.asnumpy().copy()
    return mnn.SGD(list(net.trainable_params()), 0.2)


def step_torch(net, optimizer, batch, step):
    optimizer.zero_grad()
    loss_torch(net, batch).backward()
    optimizer.step()
    d = 0.999 * (1 - np.exp(-(step + 1) / 20))
    net.ema = net.ema * d + net.l1.weight.detach() * (1 - d)


def step_ms(net, optimizer, batch, step):
    _, g = ms.value_and_grad(lambda: loss_ms(net, batch), None, list(net.trainable_params()))()
    optimizer(g)
    d = 0.999 * (1 - np.exp(-((step + 1) // 20 if FAULT else (step + 1) / 20)))
    net.ema = net.ema * np.float32(d) + net.l1.weight.asnumpy() * np.float32(1 - d)


def state_torch(net, optimizer):
    return {"ema": net.ema.numpy()}


def state_ms(net, optimizer):
    return {"ema": net.ema}
