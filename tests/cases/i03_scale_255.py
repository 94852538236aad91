"""Mean/std meant for 0..255 pixels applied to 0..1 pixels: inputs are nearly constant, all later
layers look 'different everywhere'.

Sources: sdcb/OpenVINO.NET#10 (mean/std 127.5 conventions).
"""

from __future__ import annotations

import numpy as np
import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["inputs:x", "x", "inputs"],
    "stage": "input-data",
    "cause": "normalise-scale",
    "note": "affine relation between the inputs: report a, b of x_ms = a*x_torch + b per channel",
}

MEAN, STD = (
    np.array([0.485, 0.456, 0.406], "float32").reshape(1, 3, 1, 1),
    np.array([0.229, 0.224, 0.225], "float32").reshape(1, 3, 1, 1),
)


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tnn.Conv2d(3, 6, 3, padding=1)
        self.fc = tnn.Linear(6, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).mean((2, 3)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = mnn.Conv2d(3, 6, 3, pad_mode="pad", padding=1, has_bias=True)
        self.fc = mnn.Dense(6, 3)

    def construct(self, x):
        return self.fc(ops.relu(self.conv(x)).mean((2, 3)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def raw():
    return generator(1).random((2, 3, 8, 8)).astype("float32")


def inputs():
    return {"x": (raw() - MEAN) / STD, "y": generator(2).integers(0, 3, 2).astype("int32")}


def inputs_ms():
    d = inputs()
    if FAULT:
        d["x"] = (raw() - 255 * MEAN) / (255 * STD)
    return d


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
