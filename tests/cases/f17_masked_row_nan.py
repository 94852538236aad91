"""Fully masked attention row: reference uses the dtype minimum (uniform row), port uses -inf
(undefined row).

Sources: transformers#17306, pytorch#131060, burn#4697, mindnlp ernie_m f97847a8f.
"""

from __future__ import annotations

import numpy as np
import torch
from caselib import MindSporeTap, TorchTap, copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["probs"],
    "stage": "forward",
    "cause": "masked-row-minus-inf",
    "note": "on MindSpore 2.10.0 CPU no NaN shows: softmax leaves stale memory in the all -inf row, "
    "so a NaN check alone stays silent and values may vary between runs",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.q = tnn.Linear(8, 8)
        self.k = tnn.Linear(8, 8)
        self.v = tnn.Linear(8, 8)
        self.probs = TorchTap()
        self.head = tnn.Linear(8, 3)

    def forward(self, x, mask):
        a = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        a = a.masked_fill(mask[:, None, :] == 0, torch.finfo(a.dtype).min)
        return self.head((self.probs(torch.softmax(a, -1)) @ self.v(x)).mean(1))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.q = mnn.Dense(8, 8)
        self.k = mnn.Dense(8, 8)
        self.v = mnn.Dense(8, 8)
        self.probs = MindSporeTap()
        self.head = mnn.Dense(8, 3)

    def construct(self, x, mask):
        a = ops.matmul(self.q(x), self.k(x).swapaxes(1, 2)) / 8**0.5
        a = ops.masked_fill(
            a, mask.expand_dims(1) == 0, float("-inf") if FAULT else float(np.finfo(np.float32).min)
        )
        return self.head(ops.matmul(self.probs(ops.softmax(a, -1)), self.v(x)).mean(1))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    m = np.ones((3, 5), "int32")
    m[1] = 0
    m[2, 3:] = 0
    return {
        "x": generator(1).standard_normal((3, 5, 8)).astype("float32"),
        "mask": m,
        "y": generator(2).integers(0, 3, 3).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"], batch["mask"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"], batch["mask"]), batch["y"])
