"""torch AdamW ported to mindspore.nn.AdamWeightDecay: no bias correction and eps 1e-6, so the first
steps are several times larger.

Source: observed here (nn.AdamWeightDecay first step 3.16x); MindFormers optimizer checklist maps
adam to AdamW.
"""

from __future__ import annotations

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
    "stage": "update",
    "cause": "adam-bias-correction-missing",
    "note": "gradients equal; all parameters over-updated by a step-dependent factor (~3.2x at step 1)",
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


STEPS = 3


def opt_torch(net):
    return torch.optim.AdamW(net.parameters(), lr=0.001, weight_decay=0.0)


class TorchLikeAdam:
    """Adam with eps after the bias correction and decoupled decay; its state lives in numpy."""

    def __init__(self, ps, lr=0.001, wd=0.0):
        self.ps, self.lr, self.wd, self.t = (ps, lr, wd, 0)
        self.m = [0.0] * len(ps)
        self.v = [0.0] * len(ps)

    def __call__(self, gs):
        self.t += 1
        for i, (p, g) in enumerate(zip(self.ps, gs)):
            g = g.asnumpy().astype("float64")
            w = p.asnumpy().astype("float64") * (1 - self.lr * self.wd)
            self.m[i] = 0.9 * self.m[i] + 0.1 * g
            self.v[i] = 0.999 * self.v[i] + 0.001 * g * g
            w = w - self.lr * (self.m[i] / (1 - 0.9**self.t)) / (
                np.sqrt(self.v[i] / (1 - 0.999**self.t)) + 1e-08
            )
            ops.assign(p, Tensor(w.astype("float32")))


def opt_ms(net):
    parameters = list(net.trainable_params())
    return (
        mnn.AdamWeightDecay(parameters, 0.001, weight_decay=0.0)
        if FAULT
        else TorchLikeAdam(parameters)
    )
