"""Recurrent layers in float64 with everything that ports get wrong as a setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paritydbg.explain.causes.activations import sigmoid
from paritydbg.explain.context import Floats

Kind = Literal["LSTM", "GRU", "RNN"]


@dataclass(frozen=True)
class Recurrence:
    """How a recurrent layer is calculated, in torch's terms.

    Attributes:
        kind: of cell.
        gates: the order in which torch's blocks of rows are read as gates.
        reset_before: GRU: the reset gate is applied to the state before the product.
        merged: GRU: the candidate's recurrent bias lies outside of the reset gate.
        lengths: whether sequences end where they end, so that the way back begins there.
        zeroed: whether outputs beyond the end are zero.
        swapped: whether the two directions are joined the other way round.
        forget: added to the forget gate.
        fresh: whether the initial state that was given is ignored.
        relu: RNN: ReLU in place of tanh.
    """

    kind: Kind
    gates: tuple[int, ...]
    reset_before: bool = False
    merged: bool = False
    lengths: bool = False
    zeroed: bool = True
    swapped: bool = False
    forget: float = 0.0
    fresh: bool = False
    relu: bool = False


def run(
    scheme: Recurrence,
    x: Floats,
    weights: Mapping[str, Floats],
    state: Floats | None,
    lengths: NDArray[np.intp],
) -> Floats | None:
    """The outputs (batch, length, directions times hidden) of x (batch, length, width).

    Args:
        weights: torch's, by their own names.
        state: (layers times directions, batch, hidden) or None.
        lengths: per sample; used where the scheme says so.
    """
    layer = 0
    while f"weight_ih_l{layer}" in weights:
        directions = [""] + (["_reverse"] if f"weight_ih_l{layer}_reverse" in weights else [])
        outputs = []
        for number, suffix in enumerate(directions):
            parts = [
                weights.get(f"{name}_l{layer}{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            if parts[0] is None or parts[1] is None or x.shape[-1] != parts[0].shape[1]:
                return None
            start = None
            if state is not None and not scheme.fresh:
                start = state[layer * len(directions) + number]
            outputs.append(_direction(scheme, x, parts, start, lengths, backwards=bool(suffix)))
        if scheme.swapped:
            outputs.reverse()
        x = np.concatenate(outputs, axis=-1)
        layer += 1
    return x if layer else None


def _direction(
    scheme: Recurrence,
    x: Floats,
    parts: list[Floats | None],
    start: Floats | None,
    lengths: NDArray[np.intp],
    backwards: bool,
) -> Floats:
    w_ih, w_hh, b_ih, b_hh = parts
    if w_ih is None or w_hh is None:
        raise ValueError("a recurrent layer without weights")
    batch, length, _ = x.shape
    hidden = w_hh.shape[1]
    given = x @ w_ih.T + (0.0 if b_ih is None else b_ih)
    bias = np.zeros(w_hh.shape[0]) if b_hh is None else b_hh
    h = np.zeros((batch, hidden)) if start is None else start.copy()
    c = np.zeros((batch, hidden))
    outputs = np.zeros((batch, length, hidden))
    ends = lengths if scheme.lengths else np.full(batch, length)
    for step in reversed(range(length)) if backwards else range(length):
        running = (step < ends)[:, None]
        new_h, new_c = _cell(scheme, given[:, step], h, c, w_hh, bias)
        h, c = np.where(running, new_h, h), np.where(running, new_c, c)
        outputs[:, step] = np.where(running, h, 0.0) if scheme.zeroed else h
    return outputs


def _cell(
    scheme: Recurrence, given: Floats, h: Floats, c: Floats, w_hh: Floats, bias: Floats
) -> tuple[Floats, Floats]:
    blocks = {"LSTM": 4, "GRU": 3, "RNN": 1}[scheme.kind]
    ours = [np.split(given, blocks, axis=-1)[g] for g in scheme.gates]
    matrices = [np.split(w_hh, blocks, axis=0)[g] for g in scheme.gates]
    biases = [np.split(bias, blocks)[g] for g in scheme.gates]
    if scheme.kind == "GRU":
        reset = sigmoid(ours[0] + h @ matrices[0].T + biases[0])
        update = sigmoid(ours[1] + h @ matrices[1].T + biases[1])
        if scheme.reset_before:
            inner = (reset * h) @ matrices[2].T + biases[2]
        elif scheme.merged:
            inner = reset * (h @ matrices[2].T) + biases[2]
        else:
            inner = reset * (h @ matrices[2].T + biases[2])
        new = np.tanh(ours[2] + inner)
        return np.asarray((1 - update) * new + update * h), c
    sums = [o + h @ m.T + b for o, m, b in zip(ours, matrices, biases, strict=True)]
    if scheme.kind == "RNN":
        return np.asarray(np.maximum(sums[0], 0.0) if scheme.relu else np.tanh(sums[0])), c
    new_c = sigmoid(sums[1] + scheme.forget) * c + sigmoid(sums[0]) * np.tanh(sums[2])
    return np.asarray(sigmoid(sums[3]) * np.tanh(new_c)), np.asarray(new_c)
