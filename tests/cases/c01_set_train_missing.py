"""Port never calls set_train(True): MindSpore cells start in inference mode while torch modules
start in train mode, so BN uses stored statistics.

Sources: MindSpore set_train docs, mindone#754 item 6 (opposite direction).
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
    "first": ["bn"],
    "stage": "config",
    "cause": "train-mode-not-set",
    "note": "compare cell.training with module.training; replay of bn in train mode agrees",
}


def set_modes(torch_net, mindspore_net):
    torch_net.train()
    if not FAULT:
        mindspore_net.set_train(True)


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tnn.Conv2d(2, 6, 3, padding=1)
        self.bn = tnn.BatchNorm2d(6)
        self.fc = tnn.Linear(6, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).mean((2, 3)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = mnn.Conv2d(2, 6, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn = mnn.BatchNorm2d(6)
        self.fc = mnn.Dense(6, 3)

    def construct(self, x):
        return self.fc(ops.relu(self.bn(self.conv(x))).mean((2, 3)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((4, 2, 6, 6)).astype("float32"),
        "y": generator(2).integers(0, 3, 4).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
