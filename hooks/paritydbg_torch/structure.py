"""What a torch net is made of: layers with their attributes, parameters, buffers, optimizers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from paritydbg.model.record import (
    Attribute,
    Attributes,
    LayerRecord,
    OptimizerRecord,
    ParameterRecord,
)
from paritydbg_torch.values import dtype_name

_LONGEST_TEXT = 200


def unwrapped(net: nn.Module) -> nn.Module:
    """The user's net inside DataParallel, DistributedDataParallel or torch.compile."""
    while True:
        inner = getattr(net, "_orig_mod", None)
        if inner is None and type(net).__name__ in _PARALLEL:
            inner = getattr(net, "module", None)
        if not isinstance(inner, nn.Module):
            return net
        net = inner


_PARALLEL = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")


def joined(prefix: str, name: str) -> str:
    """A dotted name under a net's prefix, wrappers' own names left out."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    return ".".join(part for part in (prefix, *parts) if part)


def named_layers(nets: Mapping[str, object]) -> Iterator[tuple[str, nn.Module]]:
    """Every layer under each of its names, in order of registration."""
    for prefix, net in nets.items():
        if isinstance(net, nn.Module):
            for name, layer in unwrapped(net).named_modules(remove_duplicate=False):
                yield joined(prefix, name), layer


def named_tensors(nets: Mapping[str, object]) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Every parameter and buffer under each of its names, with whether it is a buffer."""
    for name, layer in named_layers(nets):
        for own, parameter in layer._parameters.items():
            if parameter is not None:
                yield joined(name, own), parameter, False
        for own, buffer in layer._buffers.items():
            if buffer is not None:
                yield joined(name, own), buffer, True


def layer_records(nets: Mapping[str, object]) -> tuple[LayerRecord, ...]:
    """The layers' records; a layer under several names has one for each."""
    first: dict[int, str] = {}
    records = []
    for name, layer in named_layers(nets):
        alias = first.setdefault(id(layer), name)
        own = [*layer._parameters.items(), *layer._buffers.items()]
        records.append(
            LayerRecord(
                name=name,
                type=type(layer).__name__,
                api=api_of(type(layer)),
                leaf=not any(child is not None for child in layer._modules.values()),
                training=layer.training,
                attributes=attributes_of(layer),
                parameters=tuple(joined(name, key) for key, tensor in own if tensor is not None),
                alias_of=alias if alias != name else "",
                unhooked=why_unhooked(layer),
            )
        )
    return tuple(records)


def parameter_records(nets: Mapping[str, object]) -> tuple[ParameterRecord, ...]:
    """The parameters' and buffers' records; a tied tensor has one for each of its names."""
    first: dict[int, str] = {}
    records: dict[str, ParameterRecord] = {}
    for name, tensor, is_buffer in named_tensors(nets):
        tied = first.setdefault(id(tensor), name)
        records.setdefault(
            name,
            ParameterRecord(
                name=name,
                layer=name.rpartition(".")[0],
                shape=tuple(tensor.shape),
                dtype=dtype_name(tensor.dtype),
                trainable=tensor.requires_grad and not is_buffer,
                buffer=is_buffer,
                tied_to=tied if tied != name else "",
            ),
        )
    return tuple(records.values())


def first_names(nets: Mapping[str, object]) -> dict[int, str]:
    """Identity of each parameter and buffer -> the first of its names."""
    found: dict[int, str] = {}
    for name, tensor, _ in named_tensors(nets):
        found.setdefault(id(tensor), name)
    return found


def optimizer_record(optimizer: object, nets: Mapping[str, object]) -> OptimizerRecord:
    """Class, hyper-parameters and parameter names; of an unknown kind of object its class alone."""
    kind = type(optimizer)
    groups: Any = getattr(optimizer, "param_groups", None)
    if not isinstance(groups, list):
        return OptimizerRecord(kind.__name__, api_of(kind))
    names = first_names(nets)
    return OptimizerRecord(
        type=kind.__name__,
        api=api_of(kind),
        groups=tuple(_group_attributes(group) for group in groups),
        parameters=tuple(
            tuple(names[id(p)] for p in group["params"] if id(p) in names) for group in groups
        ),
    )


def api_of(kind: type) -> str:
    """The public name of a class: ``torch.nn.Linear``; a user's own by its module."""
    if kind.__module__.startswith("torch.nn.modules.") and hasattr(nn, kind.__name__):
        return f"torch.nn.{kind.__name__}"
    if kind.__module__.startswith("torch.optim.") and hasattr(torch.optim, kind.__name__):
        return f"torch.optim.{kind.__name__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def attributes_of(layer: nn.Module) -> Attributes:
    """Public attributes of plain type, sorted by name; ``training`` has a field of its own."""
    found: dict[str, Attribute] = {}
    for name, value in vars(layer).items():
        if name.startswith("_") or name == "training":
            continue
        plain = _plain(value)
        if plain is not _NOT_PLAIN:
            found[name] = plain
    return tuple(sorted(found.items()))


def why_unhooked(layer: nn.Module) -> str:
    """Why hooks on the layer cannot fire, or the empty string."""
    if isinstance(layer, torch.jit.ScriptModule):
        return "a scripted module runs outside of Python; capture the plain one"
    return ""


def _group_attributes(group: Mapping[str, Any]) -> Attributes:
    found = {}
    for name, value in group.items():
        if name == "params":
            continue
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.item()
        plain = _plain(value)
        if plain is not _NOT_PLAIN:
            found[name] = plain
    return tuple(sorted(found.items()))


_NOT_PLAIN: Any = object()


def _plain(value: Any) -> Any:
    """The value in a record's own types, or the mark that it is not plain."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else _NOT_PLAIN
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value)
    if isinstance(value, (tuple, list)) and len(value) <= 16:
        entries = tuple(_plain(entry) for entry in value)
        return _NOT_PLAIN if _NOT_PLAIN in entries else entries
    return _NOT_PLAIN
