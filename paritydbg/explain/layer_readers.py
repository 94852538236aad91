"""Readers of attributes that a layer keeps in its own way: flags, complements, derived numbers."""

from __future__ import annotations

from paritydbg.explain.padding import SamePadding, axes_of, pads_agree, per_axis
from paritydbg.explain.reading import UNKNOWN, Meaning, plain
from paritydbg.model.record import Attribute, LayerRecord


def kept_share(record: LayerRecord) -> Meaning:
    """The share that mindspore.nn.Dropout drops, told by ``p`` or by ``keep_prob``."""
    dropped, kept = record.attribute("p"), record.attribute("keep_prob")
    if isinstance(dropped, (int, float)):
        return dropped
    return round(1 - kept, 9) if isinstance(kept, (int, float)) else UNKNOWN


def approximate(record: LayerRecord) -> Meaning:
    """``tanh`` or ``none``; older MindSpore keeps the flag itself."""
    value = record.attribute("approximate")
    if isinstance(value, bool):
        return "tanh" if value else "none"
    return value if isinstance(value, str) else UNKNOWN


def write_approximate(meaning: Meaning, _record: LayerRecord) -> Attribute:
    return meaning == "tanh"


def reduction(record: LayerRecord) -> Meaning:
    """A MindSpore loss's reduction; some keep only two flags of it."""
    value = record.attribute("reduction")
    if isinstance(value, str):
        return value
    if record.attribute("reduce") is False:
        return "none"
    average = record.attribute("average")
    return UNKNOWN if average is None else "mean" if average else "sum"


def heads(record: LayerRecord) -> Meaning:
    """MindSpore's attention keeps the width of a head, not their number."""
    width, head = record.attribute("embed_dim"), record.attribute("head_dim")
    if isinstance(width, int) and isinstance(head, int) and head:
        return width // head
    return UNKNOWN


def torch_activation(record: LayerRecord) -> Meaning:
    known: dict[Attribute, str] = {1: "relu", 2: "gelu"}
    return known.get(record.attribute("activation_relu_or_gelu"), UNKNOWN)


def count_include_pad(record: LayerRecord) -> Meaning:
    """mindspore.nn's pools tell it only by their mode: ``same`` leaves the padding out."""
    return False if str(record.attribute("pad_mode")).lower() == "same" else UNKNOWN


def torch_count_include_pad(record: LayerRecord) -> Meaning:
    """Without padding the flag means nothing."""
    amounts = per_axis(record.attribute("padding"), axes_of(record))
    return plain("count_include_pad")(record) if amounts and any(amounts) else UNKNOWN


def border(record: LayerRecord) -> Meaning:
    """Padding layers: (left, right, top, bottom …); MindSpore's reflection keeps pairs, last axis last."""
    value = record.attribute("padding")
    if isinstance(value, tuple) and value and all(isinstance(v, tuple) for v in value):
        return tuple(side for pair in reversed(value) if isinstance(pair, tuple) for side in pair)
    return value if isinstance(value, tuple) else UNKNOWN


def rms_eps(record: LayerRecord) -> Meaning:
    """torch.nn.RMSNorm without an eps takes float32's spacing at 1."""
    value = plain("eps")(record)
    return 1.1920928955078125e-07 if value is None else value


def pad_cause(_ref: LayerRecord, port: LayerRecord, left: Meaning, right: Meaning) -> str:
    same = isinstance(left, SamePadding) or isinstance(right, SamePadding)
    same = same or str(port.attribute("pad_mode")).lower() == "same"
    if "AvgPool" in port.type:
        return "avgpool-count-include-pad" if same else "pad-mode"
    if "MaxPool" in port.type:
        return "maxpool-same-vs-symmetric-padding" if same else "pad-mode"
    return "conv-same-vs-symmetric-padding" if same else "pad-mode"


def pads_differ(left: Meaning, right: Meaning) -> bool | None:
    if left is UNKNOWN or right is UNKNOWN:
        return None
    agree = pads_agree(left, right)
    # What hangs on the input's size is told as a difference: `attributes` leaves its effect open.
    return True if agree is None else not agree
