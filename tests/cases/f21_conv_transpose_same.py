"""Transposed conv, stride 2, odd kernel: symmetric crop vs one-sided crop, same output shape, values
shifted one pixel.

Sources: keras-team/keras#22876 (shift by one pixel, odd kernel, stride 2).
"""

from __future__ import annotations

from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {"first": ["up"], "stage": "forward", "cause": "conv-transpose-padding"}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.up = tnn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1)
        self.head = tnn.Linear(5 * 100, 3)

    def forward(self, x):
        return self.head(self.up(x).flatten(1))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.up = (
            mnn.Conv2dTranspose(3, 5, 3, stride=2, pad_mode="same", has_bias=True)
            if FAULT
            else mnn.Conv2dTranspose(
                3, 5, 3, stride=2, pad_mode="pad", padding=(1, 0, 1, 0), has_bias=True
            )
        )
        self.head = mnn.Dense(5 * 100, 3)

    def construct(self, x):
        return self.head(ops.flatten(self.up(x)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 3, 5, 5)).astype("float32"),
        "y": generator(2).integers(0, 3, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
