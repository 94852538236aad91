"""The recurrent pair's port: the classifier on padded sequences with lengths, in MindSpore."""

from __future__ import annotations

import math

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, Uniform, initializer

from sample_nets.fault import check_fault
from sample_nets.rnn.data import (
    CLASSES,
    EMBEDDING,
    GRU_HIDDEN,
    HEAD,
    LENGTH,
    LSTM_HIDDEN,
    PADDING_ID,
    VOCABULARY,
)
from sample_nets.rnn.faults import FAULTS


class PaddedEmbedding(nn.Embedding):
    """Embedding whose padding row gets no gradient, as in PyTorch."""

    def __init__(self, rows: int, width: int, padding_idx: int) -> None:
        super().__init__(rows, width, embedding_table=Normal(1.0), padding_idx=padding_idx)
        self.is_padding_row = Tensor(np.arange(rows)[:, None] == padding_idx)

    def construct(self, ids: Tensor) -> Tensor:
        held = ops.stop_gradient(self.embedding_table)
        table = ops.where(self.is_padding_row, held, self.embedding_table)
        return ops.gather(table, ids, 0)


class StepwiseGRU(nn.Cell):
    """A GRU written step by step; a sequence that has ended keeps its state and gives zeros."""

    def __init__(self, width: int, hidden: int, fault: str | None) -> None:
        super().__init__()
        self.fault = fault
        bound = Uniform(1.0 / math.sqrt(hidden))
        self.weight_ih_l0 = Parameter(initializer(bound, (3 * hidden, width)))
        self.weight_hh_l0 = Parameter(initializer(bound, (3 * hidden, hidden)))
        self.bias_ih_l0 = Parameter(initializer(bound, (3 * hidden,)))
        self.bias_hh_l0 = Parameter(initializer(bound, (3 * hidden,)))

    def candidate(self, given: Tensor, state: Tensor, reset: Tensor) -> Tensor:
        """Return the new content of the state, before it is mixed with the old."""
        weight = ops.chunk(self.weight_hh_l0, 3, axis=0)[2]
        bias = ops.chunk(self.bias_hh_l0, 3, axis=0)[2]
        if self.fault == "gru-reset-before":
            return ops.tanh(given + ops.matmul(reset * state, weight.T) + bias)
        if self.fault == "gru-bias-merged":
            return ops.tanh(given + bias + reset * ops.matmul(state, weight.T))
        return ops.tanh(given + reset * (ops.matmul(state, weight.T) + bias))

    def cell(self, given: Tensor, state: Tensor) -> Tensor:
        """Return the state one step on; ``given`` is the input's share of the three gates."""
        if self.fault == "state-detached":
            state = ops.stop_gradient(state)
        recurrent = ops.matmul(state, self.weight_hh_l0.T) + self.bias_hh_l0
        given_reset, given_update, given_new = ops.chunk(given, 3, axis=-1)
        reset_part, update_part, _ = ops.chunk(recurrent, 3, axis=-1)
        if self.fault == "gru-gate-order":
            given_reset, given_update = given_update, given_reset
            reset_part, update_part = update_part, reset_part
        reset = ops.sigmoid(given_reset + reset_part)
        update = ops.sigmoid(given_update + update_part)
        new = self.candidate(given_new, state, reset)
        return (1.0 - update) * new + update * state

    def construct(self, inputs: Tensor, state: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        given = ops.matmul(inputs, self.weight_ih_l0.T) + self.bias_ih_l0
        mask = mask.astype(inputs.dtype)
        outputs = []
        for step in range(inputs.shape[1]):
            running = mask[:, step : step + 1]
            state = running * self.cell(given[:, step], state) + (1.0 - running) * state
            outputs.append(running * state)
        return ops.stack(outputs, axis=1), state


class Classifier(nn.Cell):
    """Embedding, two-way LSTM, norm, GRU from a learned state; last state and mean, then a head."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.fault = fault
        if fault == "padding-gradient":
            self.embedding = nn.Embedding(VOCABULARY, EMBEDDING, padding_idx=PADDING_ID)
        else:
            self.embedding = PaddedEmbedding(VOCABULARY, EMBEDDING, PADDING_ID)
        self.lstm = nn.LSTM(EMBEDDING, LSTM_HIDDEN, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm((2 * LSTM_HIDDEN,), epsilon=1e-5)
        start = initializer(Normal(0.5), (1, 1, GRU_HIDDEN))
        if fault == "state-constant":
            self.initial_state = Tensor(np.zeros((1, 1, GRU_HIDDEN), np.float32))
        else:
            self.initial_state = Parameter(start)
        self.gru = StepwiseGRU(2 * LSTM_HIDDEN, GRU_HIDDEN, fault)
        self.hidden = nn.Dense(2 * GRU_HIDDEN, HEAD)
        self.classes = nn.Dense(HEAD, CLASSES)

    def read(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the LSTM's outputs of both directions, normalised."""
        embedded = self.embedding(ids)
        if self.fault == "lstm-length-ignored":
            outputs, _ = self.lstm(embedded)
        else:
            outputs, _ = self.lstm(embedded, seq_length=lengths)
        if self.fault == "direction-order":
            onward, backward = ops.chunk(outputs, 2, axis=-1)
            outputs = ops.cat((backward, onward), axis=-1)
        return self.norm(outputs)

    def construct(self, ids: Tensor, lengths: Tensor) -> Tensor:
        batch = ids.shape[0]
        mask = (ops.arange(LENGTH)[None, :] < lengths[:, None]).astype(mindspore.float32)
        state = ops.broadcast_to(self.initial_state[0], (batch, GRU_HIDDEN))
        outputs, last = self.gru(self.read(ids, lengths), state, mask)
        if self.fault == "last-column":
            last = outputs[:, -1]
        if self.fault == "mean-over-padding":
            mean = outputs.mean(axis=1)
        else:
            mean = outputs.sum(axis=1) / lengths[:, None]
        hidden = ops.tanh(self.hidden(ops.cat((last, mean), axis=-1)))
        return self.classes(hidden)


def make_net(fault: str | None = None) -> nn.Cell:
    """Return the port, with the named mistake in it; ValueError for an unknown name."""
    check_fault(fault, FAULTS)
    return Classifier(fault)


def loss(net: nn.Cell, batch: dict[str, Tensor], fault: str | None = None) -> Tensor:
    """Return the mean cross entropy of the sentences' classes, a scalar."""
    check_fault(fault, FAULTS)
    reduction = "sum" if fault == "loss-sum" else "mean"
    logits = net(batch["ids"], batch["lengths"])
    return ops.cross_entropy(logits, batch["labels"], reduction=reduction)


def make_optimizer(net: nn.Cell, fault: str | None = None) -> nn.Optimizer:
    """Return SGD with Nesterov's momentum."""
    check_fault(fault, FAULTS)
    parameters = net.trainable_params()
    if fault == "nesterov-ignored":
        return nn.Momentum(parameters, learning_rate=0.05, momentum=0.9, use_nesterov=True)
    return nn.SGD(parameters, learning_rate=0.05, momentum=0.9, nesterov=True)
