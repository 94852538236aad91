"""Packed sequences under a forced replay: captured padded, replaced like any other tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from paritydbg_torch.packed import Padding
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import paritydbg

X = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32))
LENGTHS = torch.tensor([2, 5, 4])


class Scaled(nn.Module):
    factor = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scaled = Scaled()
        self.lstm = nn.LSTM(2, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(self.scaled(x), LENGTHS, True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


@pytest.mark.parametrize("batch_first", [True, False])
def test_padding_and_packing_undo_each_other(batch_first: bool) -> None:
    x = X if batch_first else X.transpose(0, 1)
    packed = pack_padded_sequence(x, LENGTHS, batch_first, enforce_sorted=False)
    padding = Padding(packed, batch_first)
    padded = padding.pad(packed.data.numpy())
    expected, _ = pad_packed_sequence(packed, batch_first)
    assert np.array_equal(padded, expected.numpy())
    assert np.array_equal(padding.pack(padded), packed.data.numpy())


def values(path: Path) -> dict[tuple[str, str, str], np.ndarray[Any, Any]]:
    with paritydbg.open_dump(path) as dump:
        return {(e.key.name, e.key.role.value, e.key.slot): dump.load(e) for e in dump.events}


def run(net: Reader, path: Path, factor: float, **options: Any) -> None:
    net.zero_grad()
    net.scaled.factor = factor
    with paritydbg.capture(net, path, **options):
        net(X).square().sum().backward()


def test_a_replay_gives_packed_sequences_the_references_values_and_gradients(
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    net = Reader()
    ref, port, replayed = (tmp_path / f"{name}.h5" for name in ("ref", "port", "replayed"))
    run(net, ref, 1.0)
    run(net, port, 2.0)
    plan = paritydbg.plan_forcing(ref, port)
    run(net, replayed, 2.0, forced_by=plan)
    right, wrong, own = values(ref), values(port), values(replayed)
    output, gradient = ("lstm", "output", "0"), ("lstm", "grad_output", "0")
    # The factor is twice too large, what is recorded of the LSTM is its work on the right input.
    assert not np.allclose(wrong[output], right[output])
    assert np.allclose(own["scaled", "output", ""], 2 * right["scaled", "output", ""])
    assert np.allclose(own[output], right[output], atol=1e-6)
    assert own[output].shape == (3, 5, 4)
    assert np.allclose(own[gradient], right[gradient], atol=1e-6)
    weight = ("lstm.weight_ih_l0", "grad", "")
    assert np.allclose(own[weight], right[weight], atol=1e-5)
