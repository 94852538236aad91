"""Right arguments, wrong kernel: MindSpore 2.10.0 CPU Conv2dTranspose(pad_mode='pad',
output_padding=1) returns torch's interior but not the last row/column.

Sources: observed here on MindSpore 2.10.0 CPU; mindspore-ai/mindspore#292 requested the option;
onnxruntime#14208 similar.
"""

from __future__ import annotations

from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["up"],
    "stage": "forward",
    "cause": "conv-transpose-output-padding-kernel",
    "note": "operator bug, not an argument slip: the attributes agree; write padding=(1,0,1,0) instead",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.c = tnn.Conv2d(2, 3, 3, padding=1)
        self.up = tnn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1)
        self.head = tnn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.up(F.relu(self.c(x))).pow(2).mean((2, 3)))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.c = mnn.Conv2d(2, 3, 3, pad_mode="pad", padding=1, has_bias=True)
        self.up = (
            mnn.Conv2dTranspose(
                3, 5, 3, stride=2, pad_mode="pad", padding=1, output_padding=1, has_bias=True
            )
            if FAULT
            else mnn.Conv2dTranspose(
                3, 5, 3, stride=2, pad_mode="pad", padding=(1, 0, 1, 0), has_bias=True
            )
        )
        self.head = mnn.Dense(5, 3)

    def construct(self, x):
        u = self.up(ops.relu(self.c(x)))
        return self.head((u * u).mean((2, 3)))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    return {
        "x": generator(1).standard_normal((2, 2, 6, 6)).astype("float32"),
        "y": generator(2).integers(0, 3, 2).astype("int32"),
    }


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]), batch["y"].long())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]), batch["y"])
