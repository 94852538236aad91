"""The decoder pair's switchable mistakes and where each first shows; no framework belongs here."""

from __future__ import annotations

from sample_nets.fault import Fault

ATTENTION = ("layers.0.self_attn.o_proj", "layers.0.self_attn", "layers.0")
"""Attention has no leaf between the projections: a slip there shows in what o_proj is given."""

# Squares of small gradients underflow in Adam's float16 second moment, and the two optimizers go on
# from there in other ways: updates of up to 80 times the learning rate on either side.
KNOWN: dict[str, tuple[str, ...]] = {"fp16": ("step1",)}

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="rms-eps-outside",
        first=("layers.0.input_layernorm",),
        stage="forward",
        cause="rmsnorm-eps-outside-sqrt",
        summary="Epsilon is added to the root of the mean square instead of under it.",
        silent=True,
    ),
    Fault(
        name="rope-interleaved",
        first=ATTENTION,
        stage="forward",
        cause="rope-interleaved-vs-half",
        summary="Rotation pairs neighbours although the weights expect the two halves.",
        silent=True,
    ),
    Fault(
        name="rope-theta",
        first=("rotary", *ATTENTION),
        stage="forward",
        cause="rope-theta",
        summary="The rotation base stayed at 10,000 while the reference uses 500,000.",
        silent=True,
    ),
    Fault(
        name="kv-tiled",
        first=ATTENTION,
        stage="forward",
        cause="kv-head-repeat-order",
        summary="Key and value heads are tiled (0, 1, 0, 1 …), not repeated (0, 0, … 1, 1).",
        silent=True,
    ),
    Fault(
        name="causal-off-by-one",
        first=ATTENTION,
        stage="forward",
        cause="causal-off-by-one",
        summary="The causal mask starts one diagonal late: every word sees the next one.",
        silent=True,
    ),
    Fault(
        name="attention-scale",
        first=ATTENTION,
        stage="forward",
        cause="attention-scale",
        summary="Scores are divided by the root of the hidden size, not of the head's width.",
        silent=True,
    ),
    Fault(
        name="gelu-gate",
        first=("layers.0.mlp.act_fn", "layers.0.mlp.down_proj", "layers.0.mlp", "layers.0"),
        stage="forward",
        cause="silu-vs-gelu",
        summary="The gate goes through GELU instead of SiLU.",
        silent=True,
    ),
    Fault(
        name="up-shares-gate",
        first=(
            *(
                f"layers.0.mlp.{layer}{parameter}"
                for layer in ("gate_proj", "up_proj")
                for parameter in ("", ".weight")
            ),
            "layers.0.mlp",
        ),
        stage="structure",
        cause="weight-shared-wrongly",
        summary="Gate and up projection hold one weight, a slip of copy and paste.",
        silent=True,
    ),
    Fault(
        name="rms-factor-detached",
        first=("norm",),
        stage="backward",
        cause="stop-gradient-extra",
        summary="The normalising factor is taken as a constant in the backward pass.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="residual-detached",
        first=(
            "layers.2.input_layernorm",
            "layers.2",
            "layers.1.mlp.down_proj",
            "layers.1.mlp",
            "layers.1",
        ),
        stage="backward",
        cause="stop-gradient-extra",
        summary="One layer adds a detached copy of its input: the gradient loses its short way.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="repeat-bprop",
        first=(
            *(
                f"layers.3.self_attn.{layer}{parameter}"
                for layer in ("v_proj", "k_proj")
                for parameter in ("", ".weight")
            ),
            "layers.3.self_attn",
            "layers.3",
        ),
        stage="backward",
        cause="custom-bprop-wrong",
        summary="A hand-written gradient averages over the repeated heads instead of summing.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="adam-no-bias-correction",
        first=("step1",),
        stage="update",
        cause="adam-bias-correction-missing",
        summary="nn.AdamWeightDecay corrects no bias: the first steps have the wrong length.",
    ),
)
