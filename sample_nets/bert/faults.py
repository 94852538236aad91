"""The encoder pair's switchable mistakes and where each first shows; no framework belongs here."""

from __future__ import annotations

from sample_nets.fault import Fault

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="gelu-tanh",
        first=("layers.0.activation",),
        stage="forward",
        cause="gelu-approximate-default",
        summary="MindSpore's nn.GELU() is the tanh approximation unless told otherwise.",
    ),
    Fault(
        name="layernorm-eps",
        first=("embeddings.norm",),
        stage="forward",
        cause="layernorm-eps-default",
        summary="MindSpore's nn.LayerNorm defaults to epsilon 1e-7, PyTorch's to 1e-5.",
    ),
    Fault(
        name="position-offset",
        first=("embeddings.position", "embeddings"),
        stage="forward",
        cause="position-ids-offset",
        summary="Positions start at 2, as RoBERTa counts them, instead of 0.",
        silent=True,
    ),
    Fault(
        name="mask-missing",
        first=("layers.0.attention.softmax", "layers.0.attention", "layers.0"),
        stage="forward",
        cause="mask-missing",
        summary="The padding mask never reaches the attention scores.",
        silent=True,
    ),
    Fault(
        name="head-count",
        first=("layers.0.attention.softmax", "layers.0.attention"),
        stage="config",
        cause="num-heads-mismatch",
        summary="Three heads of 16 instead of four of 12: every projection keeps its shape.",
    ),
    Fault(
        name="residual-before-norm",
        first=("layers.0.attention_norm", "layers.0"),
        stage="forward",
        cause="residual-before-norm",
        summary="The attention's output is normalised first and the residual is added after.",
        silent=True,
    ),
    Fault(
        name="probabilities-detached",
        first=(
            "layers.7.attention.softmax",
            "layers.7.attention.key",
            "layers.7.attention.key.weight",
            "layers.7.attention",
            "layers.7",
        ),
        stage="backward",
        cause="stop-gradient-extra",
        summary="A stop_gradient left on one layer's attention probabilities starves its scores.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="gelu-bprop",
        first=(
            "layers.11.activation",
            "layers.11.intermediate",
            "layers.11.intermediate.weight",
            "layers.11.intermediate.bias",
            "layers.11",
        ),
        stage="backward",
        cause="custom-bprop-wrong",
        summary="A GELU with its own bprop forgets the density term of the derivative.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="untied-decoder",
        first=(
            "decoder",
            "decoder.weight",
            "embeddings.word",
            "embeddings.word.weight",
        ),
        stage="structure",
        cause="weight-tying-lost",
        summary="The decoder holds a copy of the word embedding: their gradients no longer meet.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="shared-norm",
        first=(
            *(
                f"layers.{index}.{norm}{parameter}"
                for index in (0, 11)
                for norm in ("attention_norm", "output_norm")
                for parameter in ("", ".weight", ".bias")
            ),
            "layers.0",
            "layers.11",
        ),
        stage="structure",
        cause="weight-shared-wrongly",
        summary="Both norms of a layer are one cell: equal at the start, one gradient for two.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="loss-denominator",
        first=("loss",),
        stage="loss",
        cause="loss-denominator-ignore-index",
        summary="The masked-word loss is divided by all positions, not by the masked-out ones.",
        silent=True,
    ),
    Fault(
        name="decay-groups",
        first=("step1",),
        stage="update",
        cause="weight-decay-groups",
        summary="Biases and norms are decayed too, because every group got the decay.",
    ),
)
