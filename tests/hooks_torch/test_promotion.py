"""A replay in float64: casts and constants of a net's code do not bring the lower precision back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from paritydbg_torch.promotion import Promotion
from torch import nn

import paritydbg
from paritydbg.model.event import EventKey
from paritydbg.model.record import NoiseRecord
from paritydbg.session.forcing import is_promoted

X = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 7)).astype(np.float32))
SCALE = torch.full((7,), 1.0 / 3.0)


class Casting(nn.Module):
    """A norm as people write it: cast up, cast back, a constant made outside, a result written into."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(7))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.to(torch.float32)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        out = torch.empty(x.shape, dtype=torch.float32)
        out[:] = (y * SCALE).float() * self.weight
        self.seen += 1
        return out.type_as(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = Casting()
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.norm(x)))


def in_double(net: Net) -> np.ndarray[Any, Any]:
    x, w = X.numpy().astype(np.float64), net.norm.weight.detach().numpy().astype(np.float64)
    y = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    return np.asarray(y * SCALE.numpy().astype(np.float64) * w)


def noise(folder: Path, net: Net) -> dict[EventKey, NoiseRecord]:
    """What a replay records of its noise, from one perturbed and one float64 replay."""
    paths = [folder / f"{name}.h5" for name in ("ref", "moved", "exact", "own")]

    def run(path: Path, **options: Any) -> None:
        torch.manual_seed(5)
        net.zero_grad()
        with paritydbg.capture(net, path, **options):
            net(X).square().sum().backward()

    run(paths[0])
    plan = paritydbg.plan_forcing(paths[0], paths[0])
    run(paths[1], forced_by=plan, perturbed=1)
    run(paths[2], forced_by=plan, promoted=True)
    run(paths[3], forced_by=plan, noise_from=paths[1:3])
    with paritydbg.open_dump(paths[2]) as dump:
        assert is_promoted(dump.run)
        (event,) = [e for e in dump.events if (e.key.name, e.key.role) == ("norm", "output")]
        assert np.allclose(dump.load(event), in_double(net), rtol=1e-14, atol=0)
    with paritydbg.open_dump(paths[3]) as dump:
        return {record.key: record for record in dump.run.noise}


def test_casts_and_constants_are_overridden_and_the_net_is_given_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = {(k.name, k.role.value): record for k, record in noise(tmp_path, net).items()}
    record = found["norm", "output"]
    assert record.exact is not None
    assert 0.0 < record.exact < 1e-5
    assert found["head.weight", "grad"].exact is not None
    assert all(value.dtype == before[name].dtype for name, value in net.state_dict().items())
    assert torch.equal(net.head.weight, before["head.weight"])
    assert (torch.ones(2) / 3).dtype == torch.float32
    # Each of the four runs counted its call on the net's own buffer or on one given for it.
    assert net.norm.seen.item() >= 1


def test_a_layer_that_draws_is_not_held_against_float64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = torch.nn.functional.dropout

    def other_stream(x: torch.Tensor, *arguments: Any, **keywords: Any) -> torch.Tensor:
        if x.dtype == torch.float64:
            torch.rand(1)
        return original(x, *arguments, **keywords)

    monkeypatch.setattr(torch.nn.functional, "dropout", other_stream)
    torch.manual_seed(0)
    found = {(k.name, k.role.value): record for k, record in noise(tmp_path, Net()).items()}
    assert found["drop", "output"].exact is None
    assert found["drop", "output"].spread is not None


def test_what_a_function_writes_to_stays_the_callers_tensor() -> None:
    promotion = Promotion(())
    try:
        promotion.begin()
        kept = torch.zeros(2)
        kept.add_(torch.ones(2))
        kept[0] = torch.tensor(5.0)
        kept += 1
        out = torch.zeros(2)
        torch.add(kept, kept, out=out)
        assert (kept * 1).dtype == torch.float64
    finally:
        promotion.remove()
    assert kept.tolist() == [6.0, 2.0]
    assert kept.dtype == torch.float32
    assert out.tolist() == [12.0, 4.0]
    assert (kept * 1).dtype == torch.float32


def test_a_mode_that_was_entered_later_outlives_the_promotion() -> None:
    promotion = Promotion(())
    with torch.device("meta"):
        promotion.remove()
        assert torch.zeros(1).device.type == "meta"
    assert torch.zeros(1).device.type == "cpu"
