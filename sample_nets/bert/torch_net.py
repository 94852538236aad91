"""The encoder pair's reference: a BERT-style network in PyTorch, its loss and its optimizer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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


class Embeddings(nn.Module):
    """Sum of word, position and segment embeddings, normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(VOCABULARY, HIDDEN, padding_idx=PADDING_ID)
        self.position = nn.Embedding(LENGTH + 4, HIDDEN)
        self.segment = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.dropout = nn.Dropout(0.0)
        for table in (self.word, self.position, self.segment):
            nn.init.normal_(table.weight, std=0.02)
        with torch.no_grad():
            self.word.weight[PADDING_ID].zero_()

    def forward(self, ids: Tensor, segments: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        summed = self.word(ids) + self.position(positions) + self.segment(segments)
        return self.dropout(self.norm(summed))


class SelfAttention(nn.Module):
    """Multi-head attention over the words that are no padding."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = HEADS
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.key = nn.Linear(HIDDEN, HIDDEN)
        self.value = nn.Linear(HIDDEN, HIDDEN)
        self.softmax = nn.Softmax(dim=-1)
        self.output = nn.Linear(HIDDEN, HIDDEN)
        self.dropout = nn.Dropout(0.0)

    def split_heads(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        return hidden.view(batch, length, self.num_heads, width // self.num_heads).transpose(1, 2)

    def forward(self, hidden: Tensor, mask_bias: Tensor) -> Tensor:
        query = self.split_heads(self.query(hidden))
        key = self.split_heads(self.key(hidden))
        value = self.split_heads(self.value(hidden))
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + mask_bias
        context = self.softmax(scores) @ value
        merged = context.transpose(1, 2).reshape(hidden.shape)
        return self.dropout(self.output(merged))


class EncoderLayer(nn.Module):
    """Attention and feed-forward, each added to its input and then normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention()
        self.attention_norm = nn.LayerNorm(HIDDEN)
        self.intermediate = nn.Linear(HIDDEN, FEED_FORWARD)
        self.activation = nn.GELU()
        self.output = nn.Linear(FEED_FORWARD, HIDDEN)
        self.output_norm = nn.LayerNorm(HIDDEN)

    def forward(self, hidden: Tensor, mask_bias: Tensor) -> Tensor:
        hidden = self.attention_norm(hidden + self.attention(hidden, mask_bias))
        expanded = self.activation(self.intermediate(hidden))
        return self.output_norm(hidden + self.output(expanded))


class Bert(nn.Module):
    """The encoder with its masked-word head (tied to the word embedding) and sentence head."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.layers = nn.ModuleList([EncoderLayer() for _ in range(LAYERS)])
        self.transform = nn.Linear(HIDDEN, HIDDEN)
        self.transform_activation = nn.GELU()
        self.transform_norm = nn.LayerNorm(HIDDEN)
        self.decoder = nn.Linear(HIDDEN, VOCABULARY)
        self.decoder.weight = self.embeddings.word.weight
        self.pooler = nn.Linear(HIDDEN, HIDDEN)
        self.relationship = nn.Linear(HIDDEN, 2)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        mask_bias = (1.0 - mask[:, None, None, :]) * -10000.0
        hidden = self.embeddings(ids.long(), segments.long())
        for layer in self.layers:
            hidden = layer(hidden, mask_bias)
        transformed = self.transform_norm(self.transform_activation(self.transform(hidden)))
        pooled = torch.tanh(self.pooler(hidden[:, 0]))
        return self.decoder(transformed), self.relationship(pooled)


def make_net() -> nn.Module:
    """Return the reference with random weights from PyTorch's global seed."""
    return Bert()


def loss(net: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the mean masked-word loss plus the mean next-sentence loss, a scalar."""
    words, follows = net(batch["ids"], batch["segments"], batch["mask"])
    word_loss = F.cross_entropy(
        words.flatten(0, 1), batch["labels"].flatten().long(), ignore_index=IGNORED
    )
    return word_loss + F.cross_entropy(follows, batch["follows"].long())


def make_optimizer(net: nn.Module) -> torch.optim.Optimizer:
    """Return SGD with momentum that decays weight matrices, but no bias and no norm."""
    decayed = [parameter for parameter in net.parameters() if parameter.dim() > 1]
    kept = [parameter for parameter in net.parameters() if parameter.dim() == 1]
    groups = [
        {"params": decayed, "weight_decay": 0.01},
        {"params": kept, "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr=0.05, momentum=0.9)
