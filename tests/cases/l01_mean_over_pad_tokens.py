"""Token loss averaged over all positions instead of the non-ignored ones.

Sources: huggingface/transformers#34191, Pai-Megatron-Patch#587, OpenNMT-py#2209.
"""

from __future__ import annotations

from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["loss"],
    "stage": "loss",
    "cause": "loss-denominator-ignore-index",
    "note": "logits equal; loss and all gradients scaled by one constant",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.tok = tnn.Embedding(18, 10)
        self.fc = tnn.Linear(10, 18)

    def forward(self, i):
        return self.fc(self.tok(i.long()))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.tok = mnn.Embedding(18, 10)
        self.fc = mnn.Dense(10, 18)

    def construct(self, i):
        return self.fc(self.tok(i))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    y = generator(2).integers(0, 18, (3, 7)).astype("int32")
    y[0, 3:] = -100
    y[2, 5:] = -100
    return {"x": generator(1).integers(0, 18, (3, 7)).astype("int32"), "y": y}


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(
        net(batch["x"]).flatten(0, 1), batch["y"].long().flatten(), ignore_index=-100
    )


def loss_ms(net, batch):
    lo, y = (net(batch["x"]).reshape(-1, 18), batch["y"].reshape(-1))
    if FAULT:
        return ops.cross_entropy(lo, y, ignore_index=-100, reduction="none").mean()
    return ops.cross_entropy(lo, y, ignore_index=-100)
