"""Two torch runs of one start, compared by the whole way through: one net plays the port."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import paritydbg
from paritydbg.model.report import Report

Optimizers = Callable[[nn.Module], torch.optim.Optimizer]


def sgd(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), 0.1)


def record(
    net: nn.Module,
    path: Path,
    steps: int = 2,
    optimizer: Optimizers | None = sgd,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = nn.functional.mse_loss,
    width: int = 12,
) -> None:
    """Train for some steps under capture; batches depend on the step alone."""
    working = optimizer(net) if optimizer is not None else None
    with paritydbg.capture(net, path, optimizer=working) as cap:
        for step in range(steps):
            source = torch.Generator().manual_seed(step)
            x, y = torch.randn(16, width, generator=source), torch.randn(16, 4, generator=source)
            cap.batch(x=x, y=y)
            net.zero_grad()
            value = loss(net(x), y)
            cap.loss(value)
            value.backward()
            if working is not None:
                working.step()


def compared(
    folder: Path,
    reference: nn.Module,
    port: nn.Module,
    *,
    same_weights: bool = True,
    port_options: dict[str, Any] | None = None,
    **options: Any,
) -> Report:
    """The report on two nets that start from the reference's weights."""
    if same_weights:
        port.load_state_dict(reference.state_dict(), strict=False)
    record(reference, folder / "ref.h5", **options)
    record(port, folder / "port.h5", **{**options, **(port_options or {})})
    return paritydbg.diff(folder / "ref.h5", folder / "port.h5")


def places(report: Report) -> list[str]:
    return [finding.place for finding in report.findings]
