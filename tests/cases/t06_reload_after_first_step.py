"""Weights are re-loaded (set_data / load_param_into_net) after the optimizer has run once; on 2.10.0
every later optimizer call writes to the old storage and the update is lost.

Source: observed here on MindSpore 2.10.0 CPU.
"""

from __future__ import annotations

import mindspore as ms
import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import Tensor, ops
from mindspore import nn as mnn
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["step2"],
    "stage": "tool-usage",
    "cause": "set-data-detaches-optimizer",
    "note": "step 1 right, step 2: parameters did not move at all; use assign/copy_ or rebuild the optimizer",
}


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


STEPS = 3


def opt_torch(net):
    return torch.optim.SGD(net.parameters(), lr=0.1)


def opt_ms(net):
    return mnn.SGD(list(net.trainable_params()), 0.1)


def step_ms(net, optimizer, batch, step):
    parameters = list(net.trainable_params())
    if step == 1:
        for p in parameters:
            v = Tensor(p.asnumpy().copy())
            p.set_data(v) if FAULT else ops.assign(p, v)
    _, g = ms.value_and_grad(lambda: loss_ms(net, batch), None, parameters)()
    optimizer(g)
