"""Runs a torch net for one step under capture, and notes by itself which layer runs when.

What the two recordings have to do with each other belongs into `ground_truth`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

import paritydbg
from alignbed.rewiring import Origin, origin

# A layer's name and the number of its call within the step.
Place = tuple[str, int]


@dataclass(frozen=True)
class Recorded:
    """One side as it was run.

    Attributes:
        dump: its file.
        layers: where every layer comes from, by name.
        parameters: the reference's names that each parameter and buffer stands for, by its own.
        ties: every name of a parameter or buffer -> the first of its names.
        passes: the places that ran, in order, for each pass of the step.
    """

    dump: Path
    layers: dict[str, Origin]
    parameters: dict[str, tuple[str, ...]]
    ties: dict[str, str]
    passes: tuple[tuple[Place, ...], ...]

    def calls(self) -> Counter[str]:
        """How often each layer runs in the first pass."""
        return Counter(name for name, _ in self.passes[0])


def record(net: nn.Module, sample: str, dump: Path, passes: int) -> Recorded:
    """Run one step of a sample net's batch, forward and backward, cut into so many passes."""
    pieces = _pieces(sample, passes)
    loss = import_module(f"sample_nets.{sample}.torch_net").loss
    inner = _inside(net)
    log: list[Place] = []
    counts: Counter[str] = Counter()

    def listen(name: str, layer: nn.Module) -> Any:
        def hook(*_: Any) -> None:
            log.append((name, counts[name]))
            counts[name] += 1

        return layer.register_forward_hook(hook)

    handles = [listen(name, layer) for name, layer in inner.named_modules()]
    done: list[tuple[Place, ...]] = []
    try:
        # The optimizer ends the step and, learning nothing, leaves the weights alone.
        optimizer = torch.optim.SGD(net.parameters(), 0.0)
        # Hooks that write files cannot be compiled: a compiled net runs as it is.
        eager = torch.compiler.set_stance("force_eager")
        with paritydbg.capture(net, dump, optimizer=optimizer), eager:
            for piece in pieces:
                loss(net, piece).backward()
                done.append(tuple(log))
                log.clear()
            optimizer.step()
    finally:
        for handle in handles:
            handle.remove()
    layers = {name: origin(layer) for name, layer in inner.named_modules()}
    return Recorded(dump, layers, *_parameters(inner), tuple(done))


def make_net(sample: str) -> nn.Module:
    """The sample's reference, the same at every call."""
    torch.manual_seed(0)
    net: nn.Module = import_module(f"sample_nets.{sample}.torch_net").make_net()
    return net.train()


def change_weights(net: nn.Module) -> None:
    """Give every parameter and buffer of floats other values of the same spread."""
    made = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for tensor in {id(t): t for t in (*net.parameters(), *net.buffers())}.values():
            if tensor.is_floating_point():
                noise = torch.randn(tensor.shape, generator=made)
                spread = float(tensor.std()) if tensor.numel() > 1 else 0.0
                centre = float(tensor.mean())
                tensor.copy_(centre + noise.abs() * max(spread, 0.01))


def _pieces(sample: str, count: int) -> list[dict[str, torch.Tensor]]:
    batch = import_module(f"sample_nets.{sample}.data").batch(1)
    cut = {name: torch.from_numpy(array).chunk(count) for name, array in batch.items()}
    return [{name: parts[number] for name, parts in cut.items()} for number in range(count)]


def _inside(net: nn.Module) -> nn.Module:
    """The net inside the wrappers that capture sees through."""
    if isinstance(net, nn.DataParallel):
        return net.module
    inner = getattr(net, "_orig_mod", net)
    return inner if isinstance(inner, nn.Module) else net


def _parameters(net: nn.Module) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The reference's names of each tensor under the first of its names; all names -> the first."""
    found: dict[str, tuple[str, ...]] = {}
    seen: dict[int, str] = {}
    ties: dict[str, str] = {}
    for layer_name, layer in net.named_modules():
        here = origin(layer)
        for own, tensor in (*layer._parameters.items(), *layer._buffers.items()):
            if tensor is None:
                continue
            name = f"{layer_name}.{own}" if layer_name else own
            ties[name] = seen.setdefault(id(tensor), name)
            if ties[name] != name:
                continue
            if own in here.parameters:
                found[name] = here.parameters[own]
            elif here.layer is not None:
                found[name] = (f"{here.layer}.{own}" if here.layer else own,)
            else:
                found[name] = ()
    return found, ties
