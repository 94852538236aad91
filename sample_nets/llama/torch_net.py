"""The decoder pair's reference: a Llama-style network in PyTorch, its loss and its optimizer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sample_nets.llama.data import (
    ADAM_BETAS,
    ADAM_EPS,
    FEED_FORWARD,
    HEAD_WIDTH,
    HEADS,
    HIDDEN,
    KEY_VALUE_HEADS,
    LAYERS,
    RMS_EPS,
    ROPE_THETA,
    VOCABULARY,
)


class RMSNorm(nn.Module):
    """Scaling by the root of the mean square, with a learned weight."""

    def __init__(self, width: int, eps: float = RMS_EPS) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, hidden: Tensor) -> Tensor:
        mean_square = hidden.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden * torch.rsqrt(mean_square + self.eps))


class RotaryEmbedding(nn.Module):
    """Cosines and sines of every position's angles, each of shape (length, head width)."""

    def __init__(self, width: int, theta: float) -> None:
        super().__init__()
        inv_freq = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, length: int) -> tuple[Tensor, Tensor]:
        angles = torch.outer(torch.arange(length).float(), self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


def rotate_half(x: Tensor) -> Tensor:
    """Return the halves of the last axis swapped, the one that comes to the front negated."""
    front, back = x.chunk(2, dim=-1)
    return torch.cat((-back, front), dim=-1)


class Attention(nn.Module):
    """Causal attention in which several query heads share a key and a value head."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(HIDDEN, HEADS * HEAD_WIDTH, bias=False)
        self.k_proj = nn.Linear(HIDDEN, KEY_VALUE_HEADS * HEAD_WIDTH, bias=False)
        self.v_proj = nn.Linear(HIDDEN, KEY_VALUE_HEADS * HEAD_WIDTH, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD_WIDTH, HIDDEN, bias=False)

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = hidden.shape
        query = self.q_proj(hidden).view(batch, length, HEADS, HEAD_WIDTH).transpose(1, 2)
        key = self.k_proj(hidden).view(batch, length, KEY_VALUE_HEADS, HEAD_WIDTH).transpose(1, 2)
        value = self.v_proj(hidden).view(batch, length, KEY_VALUE_HEADS, HEAD_WIDTH)
        value = value.transpose(1, 2)
        query = query * cos + rotate_half(query) * sin
        key = key * cos + rotate_half(key) * sin
        key = key.repeat_interleave(HEADS // KEY_VALUE_HEADS, dim=1)
        value = value.repeat_interleave(HEADS // KEY_VALUE_HEADS, dim=1)
        scores = query @ key.transpose(-1, -2) / HEAD_WIDTH**0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)
        scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        context = scores.softmax(dim=-1) @ value
        return self.o_proj(context.transpose(1, 2).reshape(batch, length, -1))


class SwiGLU(nn.Module):
    """The gated feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, FEED_FORWARD, bias=False)
        self.up_proj = nn.Linear(HIDDEN, FEED_FORWARD, bias=False)
        self.down_proj = nn.Linear(FEED_FORWARD, HIDDEN, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, hidden: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(hidden)) * self.up_proj(hidden))


class DecoderLayer(nn.Module):
    """Attention and feed-forward, each on a normalised copy and added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(HIDDEN)
        self.self_attn = Attention()
        self.post_attention_layernorm = RMSNorm(HIDDEN)
        self.mlp = SwiGLU()

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), cos, sin)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Llama(nn.Module):
    """The decoder, from word ids to the next word's logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)
        self.rotary = RotaryEmbedding(HEAD_WIDTH, ROPE_THETA)
        self.layers = nn.ModuleList([DecoderLayer() for _ in range(LAYERS)])
        self.norm = RMSNorm(HIDDEN)
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.embed_tokens(ids.long())
        cos, sin = (table.to(hidden.dtype) for table in self.rotary(ids.shape[1]))
        for layer in self.layers:
            hidden = layer(hidden, cos, sin)
        return self.lm_head(self.norm(hidden))


def make_net() -> nn.Module:
    """Return the reference with random weights from PyTorch's global seed."""
    return Llama()


def loss(net: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the mean cross entropy of the next word, a scalar."""
    logits = net(batch["ids"])
    return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten().long())


def make_optimizer(net: nn.Module) -> torch.optim.Optimizer:
    """Return Adam with decoupled weight decay switched off."""
    return torch.optim.AdamW(
        net.parameters(), lr=1e-3, betas=ADAM_BETAS, eps=ADAM_EPS, weight_decay=0.0
    )
