"""The recurrent pair's reference: a sentence classifier on packed sequences, in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sample_nets.rnn.data import (
    CLASSES,
    EMBEDDING,
    GRU_HIDDEN,
    HEAD,
    LSTM_HIDDEN,
    PADDING_ID,
    VOCABULARY,
)


class Classifier(nn.Module):
    """Embedding, two-way LSTM, norm, GRU from a learned state; last state and mean, then a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDING, padding_idx=PADDING_ID)
        self.lstm = nn.LSTM(EMBEDDING, LSTM_HIDDEN, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * LSTM_HIDDEN)
        self.initial_state = nn.Parameter(0.5 * torch.randn(1, 1, GRU_HIDDEN))
        self.gru = nn.GRU(2 * LSTM_HIDDEN, GRU_HIDDEN, batch_first=True)
        self.hidden = nn.Linear(2 * GRU_HIDDEN, HEAD)
        self.classes = nn.Linear(HEAD, CLASSES)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        batch, length = ids.shape
        embedded = self.embedding(ids.long())
        packed = pack_padded_sequence(
            embedded, lengths.cpu().long(), batch_first=True, enforce_sorted=False
        )
        outputs, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=length
        )
        packed = pack_padded_sequence(
            self.norm(outputs), lengths.cpu().long(), batch_first=True, enforce_sorted=False
        )
        state = self.initial_state.expand(1, batch, GRU_HIDDEN).contiguous()
        packed_outputs, last = self.gru(packed, state)
        outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=length)
        mean = outputs.sum(dim=1) / lengths[:, None]
        hidden = torch.tanh(self.hidden(torch.cat((last[0], mean), dim=-1)))
        return self.classes(hidden)


def make_net() -> nn.Module:
    """Return the reference with random weights from PyTorch's global seed."""
    return Classifier()


def loss(net: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the mean cross entropy of the sentences' classes, a scalar."""
    return F.cross_entropy(net(batch["ids"], batch["lengths"]), batch["labels"].long())


def make_optimizer(net: nn.Module) -> torch.optim.Optimizer:
    """Return SGD with Nesterov's momentum."""
    return torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
