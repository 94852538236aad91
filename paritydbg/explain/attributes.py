"""Compares the attributes of two layers after converting conventions; the table is in `layer_table`."""

from __future__ import annotations

from paritydbg.explain.layer_readers import pads_differ
from paritydbg.explain.layer_table import BATCH_NORMS, CONVOLUTIONS, ROWS, TRANSPOSED
from paritydbg.explain.own_layers import own_differences
from paritydbg.explain.padding import pads_agree
from paritydbg.explain.reading import Meaning, family_of, flavour_of
from paritydbg.explain.spelling import Row, Spelling
from paritydbg.model.finding import AttributeDifference
from paritydbg.model.record import Attribute, LayerRecord

# Layers that compute something else in train mode than in eval mode.
_MODAL = frozenset(
    f"{BATCH_NORMS} Dropout Dropout1d Dropout2d Dropout3d AlphaDropout RReLU".split()
)
_RECURRENT = frozenset(("LSTM", "GRU", "RNN", "MultiheadAttention"))


def attribute_differences(
    reference: LayerRecord, port: LayerRecord
) -> tuple[AttributeDifference, ...]:
    """What the two layers were told differently, each value as its own framework writes it.

    Equal meanings under other names or conventions are no difference, nor are values that the
    records do not hold. The train/eval flag comes under the name ``training``.
    """
    found = list(_mode(reference, port))
    found += _bias(reference, port)
    kinds = family_of(reference), family_of(port)
    if all(kinds):
        for row in ROWS:
            if kinds[0] in row.families and kinds[1] in row.families:
                found += _compared(row, reference, port)
    else:
        found += own_differences(reference, port)
    return tuple(found)


def _compared(
    row: Row, reference: LayerRecord, port: LayerRecord
) -> tuple[AttributeDifference, ...]:
    spellings = _spelling(row, reference), _spelling(row, port)
    if spellings[0] is None or spellings[1] is None:
        return ()
    left, right = spellings[0].read(reference), spellings[1].read(port)
    if not row.differ(left, right):
        return ()
    cause = row.cause
    # `same` padding against fixed padding may come to the same for the sizes at hand.
    open_effect = row.differ is pads_differ and pads_agree(left, right) is None
    return (
        AttributeDifference(
            name=spellings[0].argument,
            reference=_shown(spellings[0], left, reference),
            port=_shown(spellings[1], right, port),
            port_name=spellings[1].argument,
            expected=spellings[1].write(left, port),
            cause=cause if isinstance(cause, str) else cause(reference, port, left, right),
            changes="" if open_effect else row.changes,
        ),
    )


def _shown(spelling: Spelling, meaning: Meaning, record: LayerRecord) -> Attribute:
    return spelling.show(record) if spelling.show else spelling.write(meaning, record)


def _spelling(row: Row, record: LayerRecord) -> Spelling | None:
    flavour = flavour_of(record)
    if flavour == "torch":
        return row.torch
    return row.mint if flavour == "mint" else row.mindspore


def _mode(reference: LayerRecord, port: LayerRecord) -> tuple[AttributeDifference, ...]:
    """The train/eval flags, and which statistics a BatchNorm takes by flag and setting together."""
    normalises = {family_of(reference), family_of(port)} <= set(BATCH_NORMS.split())
    if normalises:
        used = _statistics(reference), _statistics(port)
        set_by_hand = "" in (_free_statistics(reference), _free_statistics(port))
        if used[0] != used[1] and set_by_hand:
            return (_statistics_difference(reference, port),)
        if used[0] == used[1] and reference.training != port.training:
            # Frozen by the flag on one side and by the setting on the other: the same thing.
            return ()
    if reference.training == port.training:
        return ()
    return (
        AttributeDifference(
            name="training",
            reference=reference.training,
            port=port.training,
            port_name="training",
            expected=reference.training,
            cause="train-mode-not-set" if reference.training else "eval-mode-not-set",
            changes="forward" if _modal(reference) and _modal(port) else "",
        ),
    )


def _modal(record: LayerRecord) -> bool:
    """Whether the layer's flag changes what it computes."""
    kind = family_of(record)
    rate = record.attribute("p", record.attribute("dropout", 0))
    if kind in _RECURRENT:
        return bool(rate)
    if kind.startswith("Dropout") and flavour_of(record) == "torch":
        return bool(rate)
    return kind in _MODAL


def _free_statistics(record: LayerRecord) -> str:
    """``by mode`` where the flag decides which statistics are used, ``""`` where a setting does."""
    if flavour_of(record) == "mindspore":
        return "by mode" if record.attribute("use_batch_statistics") is None else ""
    return "by mode" if record.attribute("track_running_stats", True) else ""


def _statistics(record: LayerRecord) -> str:
    """The statistics that a BatchNorm normalises with: of the batch, or the stored ones."""
    if flavour_of(record) == "mindspore":
        fixed = record.attribute("use_batch_statistics")
        if fixed is not None:
            return "batch" if fixed else "stored"
    elif not record.attribute("track_running_stats", True):
        return "batch"
    return "batch" if record.training else "stored"


def _statistics_difference(reference: LayerRecord, port: LayerRecord) -> AttributeDifference:
    names = [
        "use_batch_statistics" if flavour_of(r) == "mindspore" else "track_running_stats"
        for r in (reference, port)
    ]
    wanted = _statistics(reference)
    expected: bool | None = wanted == "batch"
    if names[1] == "track_running_stats":
        expected = wanted != "batch"
    return AttributeDifference(
        name=names[0],
        reference=reference.attribute(names[0], True),
        port=port.attribute(names[1]),
        port_name=names[1],
        expected=expected,
        cause="train-mode-not-set" if wanted == "batch" else "eval-mode-not-set",
        changes="forward",
    )


def _bias(reference: LayerRecord, port: LayerRecord) -> tuple[AttributeDifference, ...]:
    """Whether linear and convolution layers have a bias, told by the parameters they own."""
    linear = {"Linear", "Bilinear", *CONVOLUTIONS.split(), *TRANSPOSED.split()}
    if family_of(reference) not in linear or family_of(port) not in linear:
        return ()
    has = _has_bias(reference), _has_bias(port)
    if has[0] is None or has[1] is None or has[0] == has[1]:
        return ()
    port_name = "has_bias" if flavour_of(port) == "mindspore" else "bias"
    convolves = "Conv" in family_of(reference)
    return (
        AttributeDifference(
            name="bias",
            reference=has[0],
            port=has[1],
            port_name=port_name,
            expected=has[0],
            cause="conv-bias-missing" if convolves else "bias-missing",
            changes="forward",
        ),
    )


def _has_bias(record: LayerRecord) -> bool | None:
    stored = record.attribute("has_bias")
    if isinstance(stored, bool):
        return stored
    if not record.parameters:
        return None
    return any(name.rpartition(".")[2] == "bias" for name in record.parameters)
