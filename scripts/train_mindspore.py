"""Trains the MindSpore side of a sample pair for a few steps; nothing of paritydbg.

The three usual ways to train are here, chosen by --mode: value_and_grad, TrainOneStepCell and
Model.train. A fault is switched on in the port by its name; --list prints the names.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import mindspore
import numpy as np
from mindspore import Tensor, nn
from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, Model, RunContext
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sample_nets import NAMES
from sample_nets.fault import describe_faults


class NetWithLoss(nn.Cell):
    """The net and its loss as one cell, called with a batch's values in the order of ``keys``."""

    def __init__(
        self,
        net: nn.Cell,
        loss: Callable[[nn.Cell, dict[str, Tensor], str | None], Tensor],
        keys: tuple[str, ...],
        fault: str | None,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.net = net
        self.loss = loss
        self.keys = keys
        self.fault = fault

    def construct(self, *values: Tensor) -> Tensor:
        return self.loss(self.net, dict(zip(self.keys, values, strict=True)), self.fault)


class PrintLoss(Callback):
    """Prints the loss at the end of each step of Model.train."""

    def on_train_step_end(self, run_context: RunContext) -> None:
        state = run_context.original_args()
        print(f"step {state.cur_step_num} loss {float(state.net_outputs.asnumpy()):.4f}")


def train_value_and_grad(port: ModuleType, data: ModuleType, steps: int, fault: str | None) -> None:
    net = port.make_net(fault)
    net.set_train()
    optimizer = port.make_optimizer(net, fault)

    def forward(batch: dict[str, Tensor]) -> Tensor:
        return port.loss(net, batch, fault)

    gradient_of = mindspore.value_and_grad(forward, None, optimizer.parameters)
    for step in range(1, steps + 1):
        batch = {key: Tensor(value) for key, value in data.batch(step).items()}
        loss, gradients = gradient_of(batch)
        optimizer(gradients)
        print(f"step {step} loss {float(loss.asnumpy()):.4f}")


def train_one_step(port: ModuleType, data: ModuleType, steps: int, fault: str | None) -> None:
    net = port.make_net(fault)
    optimizer = port.make_optimizer(net, fault)
    with_loss = NetWithLoss(net, port.loss, tuple(data.batch(1)), fault)
    cell = nn.TrainOneStepCell(with_loss, optimizer)
    cell.set_train()
    for step in range(1, steps + 1):
        loss = cell(*(Tensor(value) for value in data.batch(step).values()))
        print(f"step {step} loss {float(loss.asnumpy()):.4f}")


def train_model(port: ModuleType, data: ModuleType, steps: int, fault: str | None) -> None:
    net = port.make_net(fault)
    optimizer = port.make_optimizer(net, fault)
    if not isinstance(optimizer, nn.Optimizer):
        kind = f"{type(optimizer).__module__}.{type(optimizer).__name__}"
        sys.exit(f"Model.train takes no {kind}. Choose another: --mode train_one_step")
    keys = tuple(data.batch(1))

    def batches() -> Iterator[tuple[NDArray[np.generic], ...]]:
        for step in range(1, steps + 1):
            yield tuple(data.batch(step).values())

    dataset = GeneratorDataset(batches, list(keys), shuffle=False)
    model = Model(NetWithLoss(net, port.loss, keys, fault), optimizer=optimizer)
    model.train(1, dataset, callbacks=[PrintLoss()], dataset_sink_mode=False)


MODES = {
    "value_and_grad": train_value_and_grad,
    "train_one_step": train_one_step,
    "model": train_model,
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains the MindSpore side of a sample pair.")
    parser.add_argument("pair", nargs="?", choices=NAMES)
    parser.add_argument("--fault", help="a fault of the pair; --list prints them")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=tuple(MODES), default="value_and_grad")
    parser.add_argument("--list", action="store_true", help="print pairs and faults and leave")
    arguments = parser.parse_args()
    if arguments.pair is None and not arguments.list:
        parser.error(f"name a pair: {', '.join(NAMES)}")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    if arguments.list:
        print(describe_faults(NAMES if arguments.pair is None else (arguments.pair,)))
        return
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    mindspore.set_seed(arguments.seed)
    np.random.seed(arguments.seed)
    package = f"sample_nets.{arguments.pair}"
    port = importlib.import_module(f"{package}.mindspore_net")
    data = importlib.import_module(f"{package}.data")
    MODES[arguments.mode](port, data, arguments.steps, arguments.fault)


if __name__ == "__main__":
    main()
