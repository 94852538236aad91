"""Two shards with different numbers of valid tokens: average of per-shard means instead of one
token-weighted mean.

Sources: transformers#34191, mlx-lm#1413, torchtune#1875, OpenNMT-py#2209.
"""

from __future__ import annotations

import mindspore as ms
import torch
from caselib import copy_by_name, fault_is_on, generator, randomize
from mindspore import nn as mnn
from mindspore import ops
from torch import nn as tnn
from torch.nn import functional as F

FAULT = fault_is_on()

EXPECTED = {
    "first": ["step1"],
    "stage": "distributed",
    "cause": "mean-of-means",
    "note": "vanishes when shards have equal token counts",
}


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.tok = tnn.Embedding(14, 10)
        self.fc = tnn.Linear(10, 14)

    def forward(self, i):
        return self.fc(self.tok(i.long()))


class MindSporeNet(mnn.Cell):
    def __init__(self):
        super().__init__()
        self.tok = mnn.Embedding(14, 10)
        self.fc = mnn.Dense(10, 14)

    def construct(self, i):
        return self.fc(self.tok(i))


def torch_net():
    return randomize(TorchNet())


def mindspore_net():
    return MindSporeNet()


def inputs():
    y = generator(2).integers(0, 14, (4, 9)).astype("int32")
    y[2:, 2:] = -100
    return {"x": generator(1).integers(0, 14, (4, 9)).astype("int32"), "y": y}


def transplant(torch_net, mindspore_net):
    copy_by_name(torch_net, mindspore_net)


def loss_torch(net, batch):
    return F.cross_entropy(net(batch["x"]).flatten(0, 1), batch["y"].long().flatten())


def loss_ms(net, batch):
    return ops.cross_entropy(net(batch["x"]).reshape(-1, 14), batch["y"].reshape(-1))


def opt_torch(net):
    return torch.optim.SGD(net.parameters(), lr=1.0)


def opt_ms(net):
    return mnn.SGD(list(net.trainable_params()), 1.0)


def step_ms(net, optimizer, batch, step):
    acc, tot = (None, 0)
    for r in range(2):
        q = {k: v[2 * r : 2 * r + 2] for k, v in batch.items()}
        w = 1.0 if FAULT else float((q["y"].asnumpy() >= 0).sum())
        tot += w
        weights = list(net.trainable_params())
        _, g = ms.value_and_grad(lambda part: loss_ms(net, part), None, weights)(q)
        acc = [w * x for x in g] if acc is None else [x + w * y for x, y in zip(acc, g)]
    optimizer(tuple(x / tot for x in acc))
