"""The encoder pair's port: the same network in MindSpore, with its switchable mistakes."""

from __future__ import annotations

import math

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Normal

from sample_nets.bert.data import (
    FEED_FORWARD,
    HEADS,
    HIDDEN,
    IGNORED,
    LAYERS,
    LENGTH,
    PADDING_ID,
    VOCABULARY,
)
from sample_nets.bert.faults import FAULTS
from sample_nets.fault import check_fault


def layer_norm(fault: str | None) -> nn.Cell:
    """Return a LayerNorm over the hidden size with PyTorch's epsilon."""
    if fault == "layernorm-eps":
        return nn.LayerNorm((HIDDEN,))
    return nn.LayerNorm((HIDDEN,), epsilon=1e-5)


class ErfGELU(nn.Cell):
    """GELU with a gradient written by hand that forgets the density term."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.gelu(x)

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * 0.5 * (1.0 + ops.erf(x / math.sqrt(2.0))),)


def activation(fault: str | None) -> nn.Cell:
    """Return the feed-forward's GELU."""
    if fault == "gelu-tanh":
        return nn.GELU()
    if fault == "gelu-bprop":
        return ErfGELU()
    return nn.GELU(approximate=False)


class PaddedEmbedding(nn.Embedding):
    """Embedding whose padding row gets no gradient through the lookup, as in PyTorch."""

    def __init__(self, rows: int, width: int, padding_idx: int) -> None:
        super().__init__(rows, width, embedding_table=Normal(0.02), padding_idx=padding_idx)
        self.is_padding_row = Tensor(np.arange(rows)[:, None] == padding_idx)

    def construct(self, ids: Tensor) -> Tensor:
        held = ops.stop_gradient(self.embedding_table)
        table = ops.where(self.is_padding_row, held, self.embedding_table)
        return ops.gather(table, ids, 0)


class Embeddings(nn.Cell):
    """Sum of word, position and segment embeddings, normalised."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.word = PaddedEmbedding(VOCABULARY, HIDDEN, padding_idx=PADDING_ID)
        self.position = nn.Embedding(LENGTH + 4, HIDDEN, embedding_table=Normal(0.02))
        self.segment = nn.Embedding(2, HIDDEN, embedding_table=Normal(0.02))
        self.norm = layer_norm(fault)
        self.dropout = nn.Dropout(p=0.0)
        self.first_position = 2 if fault == "position-offset" else 0

    def construct(self, ids: Tensor, segments: Tensor) -> Tensor:
        batch, length = ids.shape
        positions = ops.arange(self.first_position, self.first_position + length)
        positions = ops.broadcast_to(positions.astype(mindspore.int32), (batch, length))
        summed = self.word(ids) + self.position(positions) + self.segment(segments)
        return self.dropout(self.norm(summed))


class SelfAttention(nn.Cell):
    """Multi-head attention over the words that are no padding."""

    def __init__(self, fault: str | None, detach_probabilities: bool) -> None:
        super().__init__()
        self.num_heads = 3 if fault == "head-count" else HEADS
        self.detach_probabilities = detach_probabilities
        self.query = nn.Dense(HIDDEN, HIDDEN)
        self.key = nn.Dense(HIDDEN, HIDDEN)
        self.value = nn.Dense(HIDDEN, HIDDEN)
        self.softmax = nn.Softmax(axis=-1)
        self.output = nn.Dense(HIDDEN, HIDDEN)
        self.dropout = nn.Dropout(p=0.0)

    def split_heads(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        split = hidden.reshape(batch, length, self.num_heads, width // self.num_heads)
        return split.swapaxes(1, 2)

    def construct(self, hidden: Tensor, mask_bias: Tensor) -> Tensor:
        query = self.split_heads(self.query(hidden))
        key = self.split_heads(self.key(hidden))
        value = self.split_heads(self.value(hidden))
        scores = ops.matmul(query, key.swapaxes(-1, -2)) / query.shape[-1] ** 0.5 + mask_bias
        probabilities = self.softmax(scores)
        if self.detach_probabilities:
            probabilities = ops.stop_gradient(probabilities)
        context = ops.matmul(probabilities, value)
        merged = context.swapaxes(1, 2).reshape(hidden.shape)
        return self.dropout(self.output(merged))


class EncoderLayer(nn.Cell):
    """Attention and feed-forward, each added to its input and then normalised."""

    def __init__(self, index: int, fault: str | None) -> None:
        super().__init__()
        self.attention = SelfAttention(fault, fault == "probabilities-detached" and index == 7)
        self.attention_norm = layer_norm(fault)
        self.intermediate = nn.Dense(HIDDEN, FEED_FORWARD)
        self.activation = activation(fault)
        self.output = nn.Dense(FEED_FORWARD, HIDDEN)
        self.output_norm = self.attention_norm if fault == "shared-norm" else layer_norm(fault)
        self.normalise_before_adding = fault == "residual-before-norm"

    def construct(self, hidden: Tensor, mask_bias: Tensor) -> Tensor:
        attended = self.attention(hidden, mask_bias)
        if self.normalise_before_adding:
            hidden = hidden + self.attention_norm(attended)
        else:
            hidden = self.attention_norm(hidden + attended)
        expanded = self.activation(self.intermediate(hidden))
        return self.output_norm(hidden + self.output(expanded))


class Bert(nn.Cell):
    """The encoder with its masked-word head (tied to the word embedding) and sentence head."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.embeddings = Embeddings(fault)
        self.layers = nn.CellList([EncoderLayer(index, fault) for index in range(LAYERS)])
        self.transform = nn.Dense(HIDDEN, HIDDEN)
        self.transform_activation = nn.GELU(approximate=fault == "gelu-tanh")
        self.transform_norm = layer_norm(fault)
        self.decoder = nn.Dense(HIDDEN, VOCABULARY)
        if fault != "untied-decoder":
            self.decoder.weight = self.embeddings.word.embedding_table
        self.pooler = nn.Dense(HIDDEN, HIDDEN)
        self.relationship = nn.Dense(HIDDEN, 2)
        self.ignore_mask = fault == "mask-missing"

    def construct(self, ids: Tensor, segments: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        kept = ops.ones_like(mask) if self.ignore_mask else mask
        mask_bias = (1.0 - kept[:, None, None, :]) * -10000.0
        hidden = self.embeddings(ids, segments)
        for layer in self.layers:
            hidden = layer(hidden, mask_bias)
        transformed = self.transform_norm(self.transform_activation(self.transform(hidden)))
        pooled = ops.tanh(self.pooler(hidden[:, 0]))
        return self.decoder(transformed), self.relationship(pooled)


def make_net(fault: str | None = None) -> nn.Cell:
    """Return the port, with the named mistake in it; ValueError for an unknown name."""
    check_fault(fault, FAULTS)
    return Bert(fault)


def loss(net: nn.Cell, batch: dict[str, Tensor], fault: str | None = None) -> Tensor:
    """Return the mean masked-word loss plus the mean next-sentence loss, a scalar."""
    check_fault(fault, FAULTS)
    words, follows = net(batch["ids"], batch["segments"], batch["mask"])
    logits, labels = words.reshape(-1, VOCABULARY), batch["labels"].reshape(-1)
    if fault == "loss-denominator":
        each = ops.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="none")
        word_loss = each.mean()
    else:
        word_loss = ops.cross_entropy(logits, labels, ignore_index=IGNORED)
    return word_loss + ops.cross_entropy(follows, batch["follows"])


def make_optimizer(net: nn.Cell, fault: str | None = None) -> nn.Optimizer:
    """Return SGD with momentum that decays weight matrices, but no bias and no norm."""
    check_fault(fault, FAULTS)
    decayed = [parameter for parameter in net.trainable_params() if parameter.ndim > 1]
    kept = [parameter for parameter in net.trainable_params() if parameter.ndim == 1]
    groups = [
        {"params": decayed, "weight_decay": 0.01},
        {"params": kept, "weight_decay": 0.01 if fault == "decay-groups" else 0.0},
        # Without it the optimizer would take the gradients in the order of the groups.
        {"order_params": net.trainable_params()},
    ]
    return nn.SGD(groups, learning_rate=0.05, momentum=0.9)
