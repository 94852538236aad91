"""A captured run is bitwise the run without capture: losses, gradients, updates, buffers, random state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import nn

import paritydbg


class Net(nn.Module):
    """Dropout, in-place activation, running statistics and tied weights in one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 16)
        self.norm = nn.BatchNorm1d(16)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.3)
        self.middle = nn.Linear(16, 16)
        self.last = nn.Linear(16, 16)
        self.last.weight = self.middle.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.act(self.norm(self.first(x))))
        return self.last(torch.tanh(self.middle(x)))


def train(path: Path | None, mixed: bool) -> list[str]:
    """Digests of everything that three steps leave behind."""
    torch.manual_seed(3)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), 0.01)
    scaler = torch.amp.GradScaler("cpu", enabled=mixed)
    told: list[str] = []

    def note(tensor: torch.Tensor) -> None:
        told.append(hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest())

    block = nullcontext() if path is None else paritydbg.capture(net, path, optimizer=optimizer)
    with block:
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
                loss = net(torch.randn(8, 12)).float().square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            note(loss)
            for parameter in net.parameters():
                assert parameter.grad is not None
                note(parameter.grad)
                note(parameter)
            for buffer in net.buffers():
                note(buffer)
            note(torch.get_rng_state())
    return told


@pytest.mark.parametrize("mixed", [False, True])
def test_training_is_bitwise_the_same(tmp_path: Path, mixed: bool) -> None:
    assert train(tmp_path / "a.h5", mixed) == train(None, mixed)
    with paritydbg.open_dump(tmp_path / "a.h5") as dump:
        assert {event.key.step for event in dump.events} == {1, 2, 3}


def test_the_comparison_would_notice_a_changed_bit(tmp_path: Path) -> None:
    def with_another_seed(function: Callable[[], list[str]]) -> list[str]:
        original = torch.manual_seed
        torch.manual_seed = lambda seed: original(seed + 1)  # type: ignore[assignment]
        try:
            return function()
        finally:
            torch.manual_seed = original

    assert train(None, False) != with_another_seed(lambda: train(None, False))
