"""Trains the PyTorch side of a sample pair for a few steps; plain PyTorch, nothing of paritydbg."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sample_nets import NAMES
from sample_nets.fault import describe_faults


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pair", nargs="?", choices=NAMES)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--list", action="store_true", help="print pairs and the port's faults and leave"
    )
    arguments = parser.parse_args()
    if arguments.pair is None and not arguments.list:
        parser.error(f"name a pair: {', '.join(NAMES)}")
    return arguments


def train(torch_net: ModuleType, data: ModuleType, steps: int) -> None:
    net = torch_net.make_net()
    net.train()
    optimizer = torch_net.make_optimizer(net)
    for step in range(1, steps + 1):
        batch = {key: torch.from_numpy(value) for key, value in data.batch(step).items()}
        optimizer.zero_grad()
        loss = torch_net.loss(net, batch)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


def main() -> None:
    arguments = parse_arguments()
    if arguments.list:
        print(describe_faults(NAMES if arguments.pair is None else (arguments.pair,)))
        return
    np.random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    package = f"sample_nets.{arguments.pair}"
    torch_net = importlib.import_module(f"{package}.torch_net")
    data = importlib.import_module(f"{package}.data")
    train(torch_net, data, arguments.steps)


if __name__ == "__main__":
    main()
