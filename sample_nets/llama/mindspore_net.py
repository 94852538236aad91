"""The decoder pair's port: the same network in MindSpore, with its switchable mistakes."""

from __future__ import annotations

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal
from mindspore.experimental import optim

from sample_nets.fault import check_fault
from sample_nets.llama.data import (
    ADAM_BETAS,
    ADAM_EPS,
    FEED_FORWARD,
    HEAD_WIDTH,
    HEADS,
    HIDDEN,
    KEY_VALUE_HEADS,
    LAYERS,
    LENGTH,
    RMS_EPS,
    ROPE_THETA,
    VOCABULARY,
)
from sample_nets.llama.faults import FAULTS

GROUP = HEADS // KEY_VALUE_HEADS
MASKED = float(np.finfo(np.float32).min)


class RMSNorm(nn.Cell):
    """Scaling by the root of the mean square, with a learned weight."""

    def __init__(self, width: int, fault: str | None, eps: float = RMS_EPS) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(width, np.float32)))
        self.eps = eps
        self.fault = fault

    def construct(self, hidden: Tensor) -> Tensor:
        mean_square = hidden.pow(2).mean(-1, keep_dims=True)
        if self.fault == "rms-eps-outside":
            return self.weight * (hidden / (ops.sqrt(mean_square) + self.eps))
        factor = ops.rsqrt(mean_square + self.eps)
        if self.fault == "rms-factor-detached":
            factor = ops.stop_gradient(factor)
        return self.weight * (hidden * factor)


def rotary_tables(length: int, fault: str | None) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of every position's angles, each of shape (length, head width)."""
    theta = 10000.0 if fault == "rope-theta" else ROPE_THETA
    exponent = np.arange(0, HEAD_WIDTH, 2, dtype=np.float32) / HEAD_WIDTH
    inv_freq = (1.0 / theta**exponent).astype(np.float32)
    angles = np.outer(np.arange(length, dtype=np.float32), inv_freq)
    if fault == "rope-interleaved":
        angles = np.repeat(angles, 2, axis=-1)
    else:
        angles = np.concatenate((angles, angles), axis=-1)
    return Tensor(np.cos(angles)), Tensor(np.sin(angles))


def rotate_half(x: Tensor) -> Tensor:
    """Return the halves of the last axis swapped, the one that comes to the front negated."""
    front, back = ops.chunk(x, 2, axis=-1)
    return ops.cat((-back, front), axis=-1)


def rotate_pairs(x: Tensor) -> Tensor:
    """Return neighbours on the last axis swapped, the one that comes first negated."""
    return ops.stack((-x[..., 1::2], x[..., 0::2]), axis=-1).reshape(x.shape)


class RepeatHeads(nn.Cell):
    """Key or value heads repeated for their query heads, with a wrong gradient written by hand."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.repeat_interleave(x, GROUP, axis=1)

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        batch, heads, length, width = x.shape
        # The gradients of the copies are averaged where they must be summed.
        return (dout.reshape(batch, heads, GROUP, length, width).mean(2),)


class Attention(nn.Cell):
    """Causal attention in which several query heads share a key and a value head."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.fault = fault
        self.q_proj = nn.Dense(HIDDEN, HEADS * HEAD_WIDTH, has_bias=False)
        self.k_proj = nn.Dense(HIDDEN, KEY_VALUE_HEADS * HEAD_WIDTH, has_bias=False)
        self.v_proj = nn.Dense(HIDDEN, KEY_VALUE_HEADS * HEAD_WIDTH, has_bias=False)
        self.o_proj = nn.Dense(HEADS * HEAD_WIDTH, HIDDEN, has_bias=False)
        self.rotate = rotate_pairs if fault == "rope-interleaved" else rotate_half
        self.scale = HIDDEN**0.5 if fault == "attention-scale" else HEAD_WIDTH**0.5
        if fault == "repeat-bprop":
            self.repeat_heads = RepeatHeads()
        first_future = 2 if fault == "causal-off-by-one" else 1
        self.future = Tensor(np.triu(np.ones((LENGTH, LENGTH), bool), k=first_future))

    def repeat(self, x: Tensor) -> Tensor:
        if self.fault == "kv-tiled":
            return ops.tile(x, (1, GROUP, 1, 1))
        if self.fault == "repeat-bprop":
            return self.repeat_heads(x)
        return ops.repeat_interleave(x, GROUP, axis=1)

    def construct(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = hidden.shape
        query = self.q_proj(hidden).reshape(batch, length, HEADS, HEAD_WIDTH).swapaxes(1, 2)
        key = self.k_proj(hidden).reshape(batch, length, KEY_VALUE_HEADS, HEAD_WIDTH)
        key = key.swapaxes(1, 2)
        value = self.v_proj(hidden).reshape(batch, length, KEY_VALUE_HEADS, HEAD_WIDTH)
        value = value.swapaxes(1, 2)
        query = query * cos + self.rotate(query) * sin
        key = key * cos + self.rotate(key) * sin
        key, value = self.repeat(key), self.repeat(value)
        scores = ops.matmul(query, key.swapaxes(-1, -2)) / self.scale
        scores = scores.masked_fill(self.future[:length, :length], MASKED)
        context = ops.matmul(ops.softmax(scores, axis=-1), value)
        return self.o_proj(context.swapaxes(1, 2).reshape(batch, length, -1))


class SwiGLU(nn.Cell):
    """The gated feed-forward; its activation is a function here, not a cell."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.gate_proj = nn.Dense(HIDDEN, FEED_FORWARD, has_bias=False)
        self.up_proj = nn.Dense(HIDDEN, FEED_FORWARD, has_bias=False)
        if fault == "up-shares-gate":
            self.up_proj.weight = self.gate_proj.weight
        self.down_proj = nn.Dense(FEED_FORWARD, HIDDEN, has_bias=False)
        self.activate = ops.gelu if fault == "gelu-gate" else ops.silu

    def construct(self, hidden: Tensor) -> Tensor:
        return self.down_proj(self.activate(self.gate_proj(hidden)) * self.up_proj(hidden))


class DecoderLayer(nn.Cell):
    """Attention and feed-forward, each on a normalised copy and added to what came in."""

    def __init__(self, index: int, fault: str | None) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(HIDDEN, fault)
        self.self_attn = Attention(fault)
        self.post_attention_layernorm = RMSNorm(HIDDEN, fault)
        self.mlp = SwiGLU(fault)
        self.detach_residual = fault == "residual-detached" and index == 2

    def construct(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        residual = ops.stop_gradient(hidden) if self.detach_residual else hidden
        hidden = residual + self.self_attn(self.input_layernorm(hidden), cos, sin)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Llama(nn.Cell):
    """The decoder, from word ids to the next word's logits."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN, embedding_table=Normal(0.02))
        self.cos, self.sin = rotary_tables(LENGTH, fault)
        self.layers = nn.CellList([DecoderLayer(index, fault) for index in range(LAYERS)])
        self.norm = RMSNorm(HIDDEN, fault)
        self.lm_head = nn.Dense(HIDDEN, VOCABULARY, has_bias=False)

    def construct(self, ids: Tensor) -> Tensor:
        hidden = self.embed_tokens(ids)
        cos, sin = (table[: ids.shape[1]].astype(hidden.dtype) for table in (self.cos, self.sin))
        for layer in self.layers:
            hidden = layer(hidden, cos, sin)
        return self.lm_head(self.norm(hidden))


def make_net(fault: str | None = None) -> nn.Cell:
    """Return the port, with the named mistake in it; ValueError for an unknown name."""
    check_fault(fault, FAULTS)
    return Llama(fault)


def loss(net: nn.Cell, batch: dict[str, Tensor], fault: str | None = None) -> Tensor:
    """Return the mean cross entropy of the next word, a scalar."""
    check_fault(fault, FAULTS)
    logits = net(batch["ids"])
    return ops.cross_entropy(logits.reshape(-1, VOCABULARY), batch["labels"].reshape(-1))


def make_optimizer(net: nn.Cell, fault: str | None = None) -> nn.Cell:
    """Return Adam with decoupled weight decay switched off."""
    check_fault(fault, FAULTS)
    parameters = net.trainable_params()
    if fault == "adam-no-bias-correction":
        beta1, beta2 = ADAM_BETAS
        return nn.AdamWeightDecay(
            parameters, learning_rate=1e-3, beta1=beta1, beta2=beta2, eps=ADAM_EPS
        )
    return optim.AdamW(parameters, lr=1e-3, betas=ADAM_BETAS, eps=ADAM_EPS, weight_decay=0.0)
