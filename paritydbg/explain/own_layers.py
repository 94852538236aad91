"""Compares the attributes of a person's own layer classes, which no table can list, by their names."""

from __future__ import annotations

from dataclasses import dataclass

from paritydbg.explain.reading import UNKNOWN, Meaning, differ, flavour_of
from paritydbg.model.finding import AttributeDifference
from paritydbg.model.record import Attribute, LayerRecord

# What both frameworks and the layers' bookkeeping keep, which says nothing about the computation.
_BOOKKEEPING = frozenset(
    ("arguments_key", "auto_prefix", "bprop_debug", "cell_init_args", "cell_type", "cls_name")
    + ("comm_fusion", "compile_cache", "data_format", "device", "dtype", "flags", "format")
    + ("enable_backward_hook", "grad_ops_label", "has_bprop", "is_top_cell", "jit_config_dict")
    + ("mixed_precision_type", "name", "param_prefix", "parameter_layout_dict", "phase")
    + ("pynative", "recompute", "requires_grad", "training", "weight_init", "bias_init")
    + ("init_std", "init_range", "prefix", "call_super_init", "dump_patches")
)


@dataclass(frozen=True)
class Known:
    """Attribute names that people use for one thing, and what follows when it differs.

    Attributes:
        names: spellings; a layer with just one of them is compared with a layer that has another.
        cause: slug; "" where it depends on the class.
        changes: as in AttributeDifference.
    """

    names: tuple[str, ...]
    cause: str
    changes: str = "forward"


_KNOWN = (
    Known(("eps", "epsilon", "variance_epsilon", "layer_norm_eps", "norm_eps"), ""),
    Known(
        ("h", "heads", "n_heads", "num_heads", "nhead", "n_head", "num_attention_heads"),
        "num-heads-mismatch",
    ),
    Known(("kv_heads", "n_kv_heads", "num_kv_heads", "num_key_value_heads"), "num-heads-mismatch"),
    Known(("head_dim", "d_head", "dim_head", "head_size"), "num-heads-mismatch"),
    Known(("theta", "rope_theta", "rotary_base", "base"), "rope-theta"),
    Known(("slope", "negative_slope"), "leakyrelu-slope-default"),
    Known(("momentum",), "bn-momentum-convention", "running-stats"),
    Known(("p", "drop", "dropout", "dropout_p", "drop_rate", "drop_prob"), "dropout-keep-prob"),
    Known(("num_groups",), "groupnorm-num-groups"),
    Known(("stride",), "conv-stride-position"),
    Known(("dilation",), "conv-dilation"),
    Known(("groups", "group"), "conv-groups"),
    Known(("causal", "is_causal"), "mask-missing"),
    Known(("label_smoothing", "smoothing"), "label-smoothing"),
    Known(("ignore_index",), "loss-denominator-ignore-index"),
    Known(("reduction",), "loss-reduction"),
    Known(("norm_first", "pre_norm"), "residual-before-norm"),
    Known(("bidirectional",), "bidirectional-order"),
    Known(("align_corners",), "resize-align-corners"),
    Known(("approximate",), "gelu-approximate-default"),
    Known(("position_offset", "pos_offset"), "position-ids-offset"),
)


def own_differences(reference: LayerRecord, port: LayerRecord) -> tuple[AttributeDifference, ...]:
    """Attributes of one name, or of two names for one thing, that differ.

    Where one of the two is a layer of a framework, only names with a known meaning count.
    """
    both_own = flavour_of(reference) == flavour_of(port) == "own"
    pairs = _named_alike(reference, port, both_own)
    found = []
    for left, right in pairs:
        mine, theirs = _value(reference, left), _value(port, right)
        if differ(mine, theirs):
            known = _known(left)
            found.append(
                AttributeDifference(
                    name=left,
                    reference=reference.attribute(left),
                    port=port.attribute(right),
                    port_name=right,
                    expected=reference.attribute(left),
                    cause=_cause(left, known, reference, port),
                    changes=known.changes if known else "",
                )
            )
    return tuple(found)


def _named_alike(
    reference: LayerRecord, port: LayerRecord, both_own: bool
) -> tuple[tuple[str, str], ...]:
    left = {name for name, _ in reference.attributes} - _BOOKKEEPING
    right = {name for name, _ in port.attributes} - _BOOKKEEPING
    found = [(name, name) for name in sorted(left & right) if both_own or _known(name)]
    for known in _KNOWN:
        mine, theirs = left & set(known.names), right & set(known.names)
        if len(mine) == len(theirs) == 1 and mine != theirs:
            found.append((mine.pop(), theirs.pop()))
    return tuple(found)


def _value(record: LayerRecord, name: str) -> Meaning:
    """The attribute's value; framework prefixes of dtype-like strings say nothing."""
    value = record.attribute(name)
    if isinstance(value, str):
        return value.lower().removeprefix("torch.").removeprefix("mindspore.")
    return UNKNOWN if value is None or value == () else value


def _known(name: str) -> Known | None:
    return next((known for known in _KNOWN if name in known.names), None)


def _cause(name: str, known: Known | None, reference: LayerRecord, port: LayerRecord) -> str:
    kinds = f"{reference.type} {port.type} {reference.name}".lower()
    if known is not None and known.names[0] == "eps":
        return _eps_cause(kinds, port.attribute(name))
    if known is not None:
        return known.cause
    if name in ("scale", "scaling", "softmax_scale"):
        if "emb" in kinds:
            return "embedding-scale"
        return "attention-scale" if "att" in kinds else ""
    return ""


def _eps_cause(kinds: str, port_value: Attribute) -> str:
    if "rms" in kinds:
        return "rmsnorm-eps-missing" if not port_value else "rmsnorm-eps"
    for word, slug in (
        ("batch", "batchnorm-eps"),
        ("group", "groupnorm-eps-site"),
        ("layer", "layernorm-eps-default"),
        ("ln", "layernorm-eps-default"),
    ):
        if word in kinds:
            return slug
    return ""
