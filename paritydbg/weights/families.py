"""Which layer types of the two frameworks are the same thing; a table, nothing about single nets."""

from __future__ import annotations

# kind -> family -> class names (lower case) of torch.nn, mindspore.nn and mindspore.mint.nn.
# A family computes one thing; a kind is what a person would still call the same sort of layer.
_TABLE: dict[str, dict[str, str]] = {
    "linear": {"linear": "linear dense lazylinear", "bilinear": "bilinear bidense"},
    "conv": {
        "conv1d": "conv1d lazyconv1d",
        "conv2d": "conv2d lazyconv2d",
        "conv3d": "conv3d lazyconv3d",
        "convtranspose1d": "convtranspose1d conv1dtranspose",
        "convtranspose2d": "convtranspose2d conv2dtranspose",
        "convtranspose3d": "convtranspose3d conv3dtranspose",
    },
    "norm": {
        "batchnorm": "batchnorm1d batchnorm2d batchnorm3d syncbatchnorm lazybatchnorm2d",
        "layernorm": "layernorm",
        "groupnorm": "groupnorm",
        "instancenorm": "instancenorm1d instancenorm2d instancenorm3d",
        "rmsnorm": "rmsnorm llamarmsnorm t5layernorm",
        "lrn": "localresponsenorm lrn",
    },
    "embedding": {"embedding": "embedding embeddinglookup paddedembedding embeddingbag"},
    "recurrent": {
        "lstm": "lstm",
        "gru": "gru",
        "rnn": "rnn",
        "lstmcell": "lstmcell",
        "grucell": "grucell",
        "rnncell": "rnncell",
    },
    "activation": {
        "relu": "relu",
        "relu6": "relu6",
        "gelu": "gelu fastgelu",
        "leakyrelu": "leakyrelu",
        "prelu": "prelu",
        "rrelu": "rrelu",
        "elu": "elu",
        "celu": "celu",
        "selu": "selu",
        "silu": "silu swish",
        "mish": "mish",
        "glu": "glu",
        "sigmoid": "sigmoid",
        "logsigmoid": "logsigmoid",
        "hardsigmoid": "hardsigmoid hsigmoid",
        "hardswish": "hardswish hswish",
        "hardtanh": "hardtanh",
        "hardshrink": "hardshrink hshrink",
        "softshrink": "softshrink",
        "softplus": "softplus",
        "softsign": "softsign",
        "tanh": "tanh",
        "tanhshrink": "tanhshrink",
        "threshold": "threshold",
    },
    "softmax": {
        "softmax": "softmax softmax2d",
        "logsoftmax": "logsoftmax",
        "softmin": "softmin",
    },
    "pool": {
        "maxpool": "maxpool1d maxpool2d maxpool3d",
        "avgpool": "avgpool1d avgpool2d avgpool3d",
        "adaptiveavgpool": "adaptiveavgpool1d adaptiveavgpool2d adaptiveavgpool3d globalavgpool",
        "adaptivemaxpool": "adaptivemaxpool1d adaptivemaxpool2d adaptivemaxpool3d",
        "maxunpool": "maxunpool1d maxunpool2d maxunpool3d",
    },
    "dropout": {
        "dropout": "dropout",
        "dropout2d": "dropout2d",
        "dropout1d": "dropout1d",
        "dropout3d": "dropout3d",
        "droppath": "droppath stochasticdepth",
    },
    "identity": {"identity": "identity"},
    "pad": {
        "zeropad": "zeropad1d zeropad2d zeropad3d pad",
        "constantpad": "constantpad1d constantpad2d constantpad3d",
        "reflectionpad": "reflectionpad1d reflectionpad2d reflectionpad3d",
        "replicationpad": "replicationpad1d replicationpad2d replicationpad3d",
    },
    "reshape": {
        "flatten": "flatten",
        "unflatten": "unflatten",
        "pixelshuffle": "pixelshuffle",
        "pixelunshuffle": "pixelunshuffle",
        "unfold": "unfold",
        "fold": "fold",
        "channelshuffle": "channelshuffle",
    },
    "upsample": {
        "upsample": "upsample upsamplingbilinear2d upsamplingnearest2d resizebilinear",
    },
    "attention": {"multiheadattention": "multiheadattention"},
    "transformer": {
        "transformer": "transformer",
        "transformerencoder": "transformerencoder",
        "transformerdecoder": "transformerdecoder",
        "transformerencoderlayer": "transformerencoderlayer",
        "transformerdecoderlayer": "transformerdecoderlayer",
    },
    "loss": {
        "crossentropyloss": "crossentropyloss softmaxcrossentropywithlogits",
        "mseloss": "mseloss",
        "l1loss": "l1loss",
        "smoothl1loss": "smoothl1loss",
        "nllloss": "nllloss",
        "bceloss": "bceloss",
        "bcewithlogitsloss": "bcewithlogitsloss",
        "kldivloss": "kldivloss",
        "huberloss": "huberloss",
        "ctcloss": "ctcloss",
    },
    "list": {
        "sequential": "sequential sequentialcell",
        "modulelist": "modulelist celllist",
        "moduledict": "moduledict celldict",
    },
}

_KIND_OF = {family: kind for kind, families in _TABLE.items() for family in families}
_FAMILY_OF = {
    name: family
    for families in _TABLE.values()
    for family, names in families.items()
    for name in names.split()
}


def family(layer_type: str) -> str:
    """The family of a class name: ``Dense`` gives ``linear``; an unknown type its lower-cased name."""
    return _FAMILY_OF.get(layer_type.lower(), layer_type.lower())


def kind(layer_type: str) -> str:
    """The kind of a class name: ``BatchNorm2d`` gives ``norm``; ``""`` for a type not in the table."""
    return _KIND_OF.get(family(layer_type), "")
