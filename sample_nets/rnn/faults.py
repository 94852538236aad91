"""The recurrent pair's switchable mistakes and where each shows; no framework belongs here."""

from __future__ import annotations

from sample_nets.fault import Fault

# torch's autocast rounds the gates inside an LSTM to float16, where a port's own stays in float32.
KNOWN: dict[str, tuple[str, ...]] = {"mixed": ("lstm",)}

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="lstm-length-ignored",
        first=("lstm",),
        stage="forward",
        cause="rnn-sequence-length",
        summary="The LSTM gets no lengths: its backward direction starts in the padding.",
        silent=True,
    ),
    Fault(
        name="direction-order",
        first=("norm",),
        stage="forward",
        cause="bidirectional-order",
        summary="The two directions of the LSTM are joined the other way round.",
        silent=True,
    ),
    Fault(
        name="gru-gate-order",
        first=("gru",),
        stage="forward",
        cause="gru-gate-order",
        summary="The gates are read as update, reset, new (as in Keras), not reset, update, new.",
        silent=True,
    ),
    Fault(
        name="gru-reset-before",
        first=("gru",),
        stage="forward",
        cause="gru-reset-after",
        summary="The reset gate is applied before the recurrent product, not after it.",
        silent=True,
    ),
    Fault(
        name="gru-bias-merged",
        first=("gru",),
        stage="forward",
        cause="gru-bias-merged",
        summary="The candidate's two biases are merged, so the reset gate misses the second.",
        silent=True,
    ),
    Fault(
        name="last-column",
        first=("hidden",),
        stage="forward",
        cause="rnn-sequence-length",
        summary="The last column stands for the last state, also where a sentence ended before.",
        silent=True,
    ),
    Fault(
        name="mean-over-padding",
        first=("hidden",),
        stage="forward",
        cause="mask-missing",
        summary="The mean over time divides by the padded length.",
        silent=True,
    ),
    Fault(
        name="state-constant",
        first=("initial_state", "gru"),
        stage="structure",
        cause="parameter-became-constant",
        summary="The learned initial state became a constant of zeros.",
        silent=True,
    ),
    Fault(
        name="padding-gradient",
        first=("embedding", "embedding.weight"),
        stage="backward",
        cause="embedding-padding-gradient",
        summary="MindSpore's padding_idx zeroes the row at the start but lets its gradient pass.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="state-detached",
        first=(
            "gru",
            *(f"gru.{kind}_{side}_l0" for kind in ("weight", "bias") for side in ("ih", "hh")),
        ),
        stage="backward",
        cause="stop-gradient-extra",
        summary="The state is detached at every step, so no gradient runs back through time.",
        silent=True,
        backward_only=True,
    ),
    Fault(
        name="loss-sum",
        first=("loss",),
        stage="loss",
        cause="loss-reduction",
        summary="The loss is summed over the batch instead of averaged.",
        silent=True,
    ),
    Fault(
        name="nesterov-ignored",
        first=("step1",),
        stage="update",
        cause="nesterov-ignored",
        summary="nn.Momentum takes use_nesterov=True and steps with plain momentum all the same.",
        silent=True,
    ),
)
