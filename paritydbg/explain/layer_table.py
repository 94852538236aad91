"""The table of layer attributes: what each means, how each framework spells it, and what it changes.

One row per attribute and set of layers. Reading and comparing values is in `reading` and `attributes`;
modes, biases and a person's own classes, which no single attribute tells, are in `attributes`.
Spellings were read off the layers of both frameworks as they stand after construction: MindSpore's
BatchNorm, for one, is built with ``momentum=0.9`` and keeps 1 - 0.9.
"""

from __future__ import annotations

from paritydbg.explain.layer_readers import (
    approximate,
    border,
    count_include_pad,
    heads,
    kept_share,
    pad_cause,
    pads_differ,
    reduction,
    rms_eps,
    torch_activation,
    torch_count_include_pad,
    write_approximate,
)
from paritydbg.explain.padding import (
    mindspore_pads,
    mindspore_transposed_pads,
    show_mindspore_pads,
    torch_pads,
    torch_transposed_pads,
    write_mindspore_pads,
    write_torch_pads,
)
from paritydbg.explain.spelling import Row, Spelling, bounded, one_minus, row, same_name, sized_row

BATCH_NORMS = "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm"
INSTANCE_NORMS = "InstanceNorm1d InstanceNorm2d InstanceNorm3d"
CONVOLUTIONS = "Conv1d Conv2d Conv3d"
TRANSPOSED = "ConvTranspose1d ConvTranspose2d ConvTranspose3d"
MAX_POOLS = "MaxPool1d MaxPool2d MaxPool3d"
AVERAGE_POOLS = "AvgPool1d AvgPool2d AvgPool3d"
POOLS = f"{MAX_POOLS} {AVERAGE_POOLS}"
RECURRENT = "LSTM GRU RNN"
LOSSES = (
    "CrossEntropyLoss NLLLoss MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss "
    "MarginRankingLoss CosineEmbeddingLoss TripletMarginLoss PoissonNLLLoss GaussianNLLLoss "
    "HingeEmbeddingLoss CTCLoss MultiLabelMarginLoss MultiMarginLoss SoftMarginLoss"
)
UPSAMPLES = "Upsample UpsamplingNearest2d UpsamplingBilinear2d"
PADS = "ZeroPad2d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d "
PADS += "ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d"


_TORCH_PADS = Spelling("padding", torch_pads, write_torch_pads, lambda r: r.attribute("padding"))
_MINDSPORE_PADS = Spelling(
    "pad_mode, padding", mindspore_pads, write_mindspore_pads, show_mindspore_pads
)
_TORCH_CUT = Spelling(
    "padding, output_padding",
    torch_transposed_pads,
    write_torch_pads,
    lambda r: (r.attribute("padding"), r.attribute("output_padding", 0)),
)
_MINDSPORE_CUT = Spelling(
    "pad_mode, padding", mindspore_transposed_pads, write_mindspore_pads, show_mindspore_pads
)

ROWS: tuple[Row, ...] = (
    # Normalisation.
    row(BATCH_NORMS, "eps", "batchnorm-eps"),
    row(INSTANCE_NORMS, "eps", "instancenorm-eps"),
    row("GroupNorm", "eps", "groupnorm-eps-site"),
    row("LayerNorm", "eps", "layernorm-eps-default", port="epsilon"),
    Row(("RMSNorm",), Spelling("eps", rms_eps), None, Spelling("eps", rms_eps), "rmsnorm-eps"),
    Row(
        tuple(BATCH_NORMS.split()),
        same_name("momentum"),
        one_minus("momentum"),
        same_name("momentum"),
        "bn-momentum-convention",
        "running-stats",
    ),
    row("GroupNorm", "num_groups", "groupnorm-num-groups"),
    row("GroupNorm " + INSTANCE_NORMS, "affine", "norm-affine-missing"),
    row("LayerNorm", "normalized_shape", "norm-axis"),
    row("LayerNorm", "elementwise_affine", "norm-affine-missing"),
    # Activations.
    Row(
        ("GELU",),
        Spelling("approximate", approximate),
        Spelling("approximate", approximate, write_approximate),
        Spelling("approximate", approximate),
        "gelu-approximate-default",
    ),
    row("LeakyReLU", "negative_slope", "leakyrelu-slope-default", port="alpha"),
    row("ELU CELU", "alpha", "elu-alpha"),
    row("Softplus", "beta", "softplus-threshold"),
    row("Softplus", "threshold", "softplus-threshold"),
    row("Hardtanh", "min_val", "clamp-bounds"),
    row("Hardtanh", "max_val", "clamp-bounds"),
    row("Softmax LogSoftmax Softmin", "dim", "softmax-axis", port="axis"),
    row("GLU", "dim", "softmax-axis"),
    row("Threshold", "threshold", "activation-threshold"),
    row("Threshold", "value", "activation-threshold"),
    row("Hardshrink Softshrink", "lambd", "activation-threshold"),
    Row(
        ("Dropout",),
        same_name("p"),
        Spelling("p", kept_share),
        same_name("p"),
        "dropout-keep-prob",
    ),
    Row(
        ("Dropout1d", "Dropout2d", "Dropout3d"),
        same_name("p"),
        Spelling("p", kept_share),
        same_name("p"),
        "dropout-keep-prob",
    ),
    # Convolution and pooling.
    Row(
        tuple(f"{CONVOLUTIONS} {POOLS}".split()),
        _TORCH_PADS,
        _MINDSPORE_PADS,
        _TORCH_PADS,
        pad_cause,
        differ=pads_differ,
    ),
    Row(
        tuple(TRANSPOSED.split()),
        _TORCH_CUT,
        _MINDSPORE_CUT,
        _TORCH_CUT,
        "conv-transpose-padding",
    ),
    Row(
        tuple(CONVOLUTIONS.split()),
        same_name("padding_mode"),
        # mindspore.nn's convolutions pad with zeros alone.
        Spelling("padding_mode", lambda _record: "zeros"),
        same_name("padding_mode"),
        "pad-mode",
    ),
    sized_row(f"{CONVOLUTIONS} {TRANSPOSED} {POOLS}", "kernel_size", "conv-kernel-size"),
    sized_row(f"{CONVOLUTIONS} {TRANSPOSED}", "stride", "conv-stride-position"),
    sized_row(POOLS, "stride", "pool-stride", "kernel_size"),
    sized_row(f"{CONVOLUTIONS} {TRANSPOSED} {MAX_POOLS}", "dilation", "conv-dilation"),
    row(f"{CONVOLUTIONS} {TRANSPOSED}", "groups", "conv-groups", port="group"),
    row(POOLS, "ceil_mode", "pool-ceil-mode"),
    Row(
        tuple(AVERAGE_POOLS.split()),
        Spelling("count_include_pad", torch_count_include_pad),
        Spelling("count_include_pad", count_include_pad),
        Spelling("count_include_pad", torch_count_include_pad),
        "avgpool-count-include-pad",
    ),
    row("AvgPool2d AvgPool3d", "divisor_override", "avgpool-divisor"),
    sized_row(
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d",
        "output_size",
        "adaptive-pool-bins",
    ),
    Row(
        tuple(PADS.split()),
        Spelling("padding", border),
        Spelling("padding", border),
        Spelling("padding", border),
        "pad-order",
    ),
    row("ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad2d", "value", "pad-value"),
    # Resizing and reshaping.
    Row(
        tuple(UPSAMPLES.split()),
        bounded("align_corners", None, False),
        bounded("align_corners", None, False),
        bounded("align_corners", None, False),
        "resize-align-corners",
    ),
    row(UPSAMPLES, "mode", "resize-mode"),
    row(UPSAMPLES, "size", "resize-size"),
    row(UPSAMPLES, "scale_factor", "resize-size"),
    row("Flatten", "start_dim", "flatten-order"),
    row("Flatten", "end_dim", "flatten-order"),
    row("PixelShuffle", "upscale_factor", "channel-shuffle-order"),
    row("PixelUnshuffle", "downscale_factor", "channel-shuffle-order"),
    row("ChannelShuffle", "groups", "channel-shuffle-order"),
    row("Unflatten", "dim", "flatten-order", port="axis"),
    row("Unflatten", "unflattened_size", "flatten-order"),
    # Embedding, recurrence, attention.
    Row(
        ("Embedding",),
        bounded("padding_idx", None, -1),
        bounded("padding_idx", None, -1),
        bounded("padding_idx", None, -1),
        "embedding-padding-gradient",
        "backward",
    ),
    row("Embedding", "scale_grad_by_freq", "gradient-scaled", "backward"),
    row(f"{RECURRENT} LSTMCell GRUCell RNNCell", "hidden_size", "rnn-hidden-size"),
    row(RECURRENT, "num_layers", "rnn-num-layers"),
    row(RECURRENT, "bidirectional", "bidirectional-order"),
    row(RECURRENT, "batch_first", "rnn-batch-first"),
    row(RECURRENT, "dropout", "dropout-keep-prob"),
    row(f"{RECURRENT} LSTMCell GRUCell RNNCell", "bias", "bias-missing", port="has_bias"),
    row("RNN", "nonlinearity", "rnn-nonlinearity"),
    Row(
        ("MultiheadAttention",),
        same_name("num_heads"),
        Spelling("num_heads", heads),
        same_name("num_heads"),
        "num-heads-mismatch",
    ),
    row("MultiheadAttention", "dropout", "dropout-keep-prob"),
    row("MultiheadAttention", "batch_first", "attention-batch-first"),
    row("TransformerEncoderLayer TransformerDecoderLayer", "norm_first", "residual-before-norm"),
    Row(
        ("TransformerEncoderLayer", "TransformerDecoderLayer"),
        Spelling("activation", torch_activation),
        same_name("activation1"),
        None,
        "activation-differs",
    ),
    # Losses.
    Row(
        tuple(LOSSES.split()),
        same_name("reduction"),
        Spelling("reduction", reduction),
        same_name("reduction"),
        "loss-reduction",
    ),
    Row(
        ("KLDivLoss",),
        same_name("reduction"),
        Spelling("reduction", reduction),
        same_name("reduction"),
        "kldiv-reduction",
    ),
    row("KLDivLoss", "log_target", "kldiv-reduction"),
    row("CrossEntropyLoss NLLLoss", "ignore_index", "loss-denominator-ignore-index"),
    row("CrossEntropyLoss", "label_smoothing", "label-smoothing"),
    row("SmoothL1Loss", "beta", "smoothl1-beta"),
    row("HuberLoss", "delta", "smoothl1-beta"),
    row(
        "MarginRankingLoss CosineEmbeddingLoss TripletMarginLoss HingeEmbeddingLoss",
        "margin",
        "loss-margin",
    ),
    row("TripletMarginLoss PoissonNLLLoss GaussianNLLLoss", "eps", "loss-eps"),
    row("PoissonNLLLoss", "log_input", "logits-vs-probabilities"),
    row("PoissonNLLLoss GaussianNLLLoss", "full", "loss-full"),
    row("CTCLoss", "blank", "ctc-blank"),
    row("CTCLoss", "zero_infinity", "ctc-zero-infinity"),
)
