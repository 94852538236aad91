"""Names that differ by framework alone, as data, and the rename rules a user gives; no pairing here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paritydbg.errors import UsageError

Rename = tuple[str, str]

# Other names of a parameter -> the PyTorch name. Checked by building torch 2.13 and mindspore 2.10
# layers: norms hold gamma/beta and moving_*, a norm that is the net itself mean/variance, an
# embedding its table, a PReLU w.
PARAMETER_NAMES = {
    "gamma": "weight",
    "embedding_table": "weight",
    "w": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "mean": "running_mean",
    "moving_variance": "running_var",
    "moving_var": "running_var",
    "variance": "running_var",
}

# Counters of PyTorch's norms that no MindSpore cell holds.
DROPPED = frozenset({"num_batches_tracked"})

# Names that wrappers put into a path: data parallel, compile, fully sharded, activation
# checkpointing, mixed precision (_backbone) and training cells (network); bn2d is the inner cell
# of mindspore.nn.BatchNorm3d.
WRAPPERS = frozenset(
    {
        "module",
        "_orig_mod",
        "_fsdp_wrapped_module",
        "_checkpoint_wrapped_module",
        "_forward_module",
        "_backbone",
        "network",
        "bn2d",
    }
)

_DENSE = re.compile(r"dense(\d*)")

# A layer's last name -> the part it is of a fused projection, and what fused ones are made of.
# These are the names in common use in published attention and gated feed-forward code.
PARTS = {
    **dict.fromkeys(("q", "query", "q_proj", "query_proj", "wq", "to_q", "q_lin", "linear_q"), "q"),
    **dict.fromkeys(("k", "key", "k_proj", "key_proj", "wk", "to_k", "k_lin", "linear_k"), "k"),
    **dict.fromkeys(("v", "value", "v_proj", "value_proj", "wv", "to_v", "v_lin", "linear_v"), "v"),
    **dict.fromkeys(("gate", "gate_proj", "w1"), "gate"),
    **dict.fromkeys(("up", "up_proj", "w3"), "up"),
}
FUSED = {
    **dict.fromkeys(
        (
            "qkv",
            "qkv_proj",
            "in_proj",
            "c_attn",
            "wqkv",
            "w_qkv",
            "to_qkv",
            "query_key_value",
            "qkv_linear",
        ),
        ("q", "k", "v"),
    ),
    **dict.fromkeys(("kv", "kv_proj", "to_kv", "key_value", "wkv"), ("k", "v")),
    **dict.fromkeys(("gate_up", "gate_up_proj", "w13", "w_gate_up"), ("gate", "up")),
}


def canonical_parameter(last: str) -> str:
    """The PyTorch name of a parameter's last name: ``gamma`` gives ``weight``."""
    return PARAMETER_NAMES.get(last, last)


def canonical_component(part: str) -> str:
    """One part of a layer's name without case, underscores and the framework's own word for it."""
    plain = part.lower().replace("_", "")
    dense = _DENSE.fullmatch(plain)
    return f"linear{dense.group(1)}" if dense else plain


def canonical(name: str) -> str:
    """A parameter's dotted name without wrappers and in PyTorch's words: both sides meet in it."""
    *path, last = name.split(".")
    kept = [canonical_component(part) for part in path if part not in WRAPPERS]
    return ".".join([*kept, canonical_parameter(last)])


def parse_rename(text: str) -> Rename:
    """The rule that ``OLD=NEW`` stands for; see `rename_name` for what it does.

    Raises:
        UsageError: no ``=``, nothing before it, or a ``*`` on the right that the left has not.
    """
    old, sign, new = text.partition("=")
    old, new = old.strip(), new.strip()
    if not sign or not old:
        raise UsageError(
            f"rename rule {text!r} is not OLD=NEW; write e.g. --rename encoder=backbone"
        )
    if new.count("*") > old.count("*"):
        raise UsageError(
            f"rename rule {text!r} has more * on the right than on the left; each * on the right "
            "stands for one on the left"
        )
    return old, new


def rename_name(name: str, rules: Sequence[Rename]) -> str:
    """A reference's dotted name as the rules rename it; the first rule that fits is applied.

    An OLD with ``*`` or ``?`` is a shell-style pattern for the whole name, and every ``*`` of NEW
    takes what the ``*`` in the same place stood for: ``blocks.*.fc=layers.*.dense``. A plain OLD
    stands for whole parts of the name, at its first occurrence: ``encoder=backbone`` turns
    ``encoder.fc.weight`` into ``backbone.fc.weight``; an empty NEW removes the parts.
    """
    for old, new in rules:
        renamed = _by_pattern(name, old, new) if set("*?") & set(old) else _by_parts(name, old, new)
        if renamed is not None:
            return renamed
    return name


def _by_pattern(name: str, old: str, new: str) -> str | None:
    pattern = "".join(
        "(.*)" if char == "*" else "." if char == "?" else re.escape(char) for char in old
    )
    match = re.fullmatch(pattern, name)
    if match is None:
        return None
    filled = iter(match.groups())
    return "".join(next(filled, "") if char == "*" else char for char in new)


def _by_parts(name: str, old: str, new: str) -> str | None:
    parts, wanted = name.split("."), old.strip(".").split(".")
    for start in range(len(parts) - len(wanted) + 1):
        if parts[start : start + len(wanted)] == wanted:
            put = [part for part in new.strip(".").split(".") if part]
            return ".".join([*parts[:start], *put, *parts[start + len(wanted) :]])
    return None
