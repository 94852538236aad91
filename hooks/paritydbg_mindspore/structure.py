"""What a MindSpore net is made of: layers with their attributes, parameters and buffers.

Names are the user's own: wrappers that training and mixed precision put around cells are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn

from paritydbg.model.record import Attribute, Attributes, LayerRecord, ParameterRecord
from paritydbg_mindspore.values import dtype_name

_LONGEST_TEXT = 200
_REWRITTEN = re.compile(r"\w+Opt_\d+")
# Cells that mixed precision puts around the user's, each with the user's cell as `_backbone`.
_CASTS = frozenset({"_OutputTo32", "_OutputTo16", "_OutputToBF16", "OutputTo16", "OutputTo32"})
# Parameters that no gradient moves and that the layer itself updates: running statistics.
_STATISTICS = frozenset({"moving_mean", "moving_variance", "running_mean", "running_var"})


def unwrapped(cell: nn.Cell) -> nn.Cell:
    """The user's cell inside a cast that mixed precision put around it."""
    while type(cell).__name__ in _CASTS and isinstance(cell._cells.get("_backbone"), nn.Cell):
        cell = cell._cells["_backbone"]
    return cell


def joined(prefix: str, name: str) -> str:
    """A dotted name under a prefix."""
    return ".".join(part for part in (prefix, name) if part)


def named_layers(nets: Mapping[str, object]) -> Iterator[tuple[str, nn.Cell]]:
    """Every layer under each of its names, in order of registration."""
    for prefix, net in nets.items():
        if isinstance(net, nn.Cell):
            yield from _under(prefix, unwrapped(net))


def _under(name: str, cell: nn.Cell) -> Iterator[tuple[str, nn.Cell]]:
    yield name, cell
    for own, child in children(cell):
        yield from _under(joined(name, own), unwrapped(child))


def children(cell: nn.Cell) -> Iterator[tuple[str, nn.Cell]]:
    """The cells directly inside, those that are really called.

    Amp level O1 replaces the cells of a sequence in the list that it runs through, and leaves the
    registered ones as they were.
    """
    run = getattr(cell, "cell_list", None)
    registered = list(cell._cells.items())
    replaced = isinstance(run, (list, tuple)) and len(run) == len(registered)
    for number, (name, child) in enumerate(registered):
        called = run[number] if replaced and isinstance(run, (list, tuple)) else child
        if isinstance(called, nn.Cell):
            yield name, called


def named_parameters(nets: Mapping[str, object]) -> Iterator[tuple[str, Any, bool]]:
    """Every parameter and buffer under each of its names, with whether it is a buffer."""
    for name, cell in named_layers(nets):
        for own, parameter in cell._params.items():
            if isinstance(parameter, Parameter):
                yield joined(name, own), parameter, is_statistic(own, parameter)
        for own, buffer in getattr(cell, "_buffers", {}).items():
            if isinstance(buffer, Tensor):
                yield joined(name, own), buffer, True


def is_statistic(name: str, parameter: Parameter) -> bool:
    """Whether a parameter is a running statistic; a frozen weight is none."""
    return name in _STATISTICS or (name in ("mean", "variance") and not parameter.requires_grad)


def layer_records(nets: Mapping[str, object]) -> tuple[LayerRecord, ...]:
    """The layers' records; a layer under several names has one for each."""
    first: dict[int, str] = {}
    records = []
    for name, cell in named_layers(nets):
        alias = first.setdefault(id(cell), name)
        own = [*cell._params.items(), *getattr(cell, "_buffers", {}).items()]
        kind = user_class(type(cell))
        records.append(
            LayerRecord(
                name=name,
                type=kind.__name__,
                api=api_of(kind),
                leaf=next(children(cell), None) is None,
                training=bool(cell.training),
                attributes=attributes_of(cell),
                parameters=tuple(joined(name, key) for key, value in own if value is not None),
                alias_of=alias if alias != name else "",
                unhooked=why_unhooked(cell),
            )
        )
    return tuple(records)


def parameter_records(nets: Mapping[str, object]) -> tuple[ParameterRecord, ...]:
    """The parameters' and buffers' records; a tied tensor has one for each of its names."""
    first: dict[int, str] = {}
    records: dict[str, ParameterRecord] = {}
    for name, tensor, is_buffer in named_parameters(nets):
        tied = first.setdefault(id(tensor), name)
        records.setdefault(
            name,
            ParameterRecord(
                name=name,
                layer=name.rpartition(".")[0],
                shape=tuple(tensor.shape),
                dtype=dtype_name(tensor),
                trainable=bool(getattr(tensor, "requires_grad", False)) and not is_buffer,
                buffer=is_buffer,
                tied_to=tied if tied != name else "",
            ),
        )
    return tuple(records.values())


def first_names(nets: Mapping[str, object]) -> dict[int, str]:
    """Identity of each parameter and buffer -> the first of its names."""
    found: dict[int, str] = {}
    for name, tensor, _ in named_parameters(nets):
        found.setdefault(id(tensor), name)
    return found


def user_class(kind: type) -> type:
    """The user's class behind the subclass that amp level O1 writes (in a module ``NetOpt_1234``)."""
    if _REWRITTEN.fullmatch(kind.__module__) and len(kind.__mro__) > 1:
        return kind.__mro__[1]
    return kind


def api_of(kind: type) -> str:
    """The public name of a class: ``mindspore.nn.Dense``; a user's own by its module."""
    if kind.__module__.startswith("mindspore.mint."):
        for package, name in ((ms.mint.nn, "mint.nn"), (ms.mint.optim, "mint.optim")):
            if getattr(package, kind.__name__, None) is kind:
                return f"mindspore.{name}.{kind.__name__}"
    for package, name in ((nn, "nn"), (ms.experimental.optim, "experimental.optim")):
        if getattr(package, kind.__name__, None) is kind:
            return f"mindspore.{name}.{kind.__name__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def attributes_of(cell: nn.Cell) -> Attributes:
    """Public attributes of plain type, sorted by name, without what every cell has."""
    found: dict[str, Attribute] = {}
    for name, value in vars(cell).items():
        if name.startswith("_") or name in _EVERY_CELL:
            continue
        plain = plain_value(value)
        if plain is not NOT_PLAIN:
            found[name] = plain
    return tuple(sorted(found.items()))


def why_unhooked(cell: nn.Cell) -> str:
    """Why hooks on the cell cannot fire, or the empty string."""
    if getattr(cell, "has_bprop", False):
        return (
            "it defines its own bprop, where MindSpore calls no forward hook; its inputs are seen"
        )
    if "construct" in vars(cell) or hasattr(type(cell).construct, "__wrapped__"):
        # jit replaces the method by a wrapper that runs compiled code.
        return "its construct is compiled (jit), where hooks do not fire; set MS_JIT=0"
    if ms.get_context("mode") == ms.GRAPH_MODE:
        return "GRAPH mode, where hooks do not fire; use PYNATIVE_MODE, or paritydbg run"
    return ""


NOT_PLAIN: Any = object()


def plain_value(value: Any) -> Any:
    """The value in a record's own types, or NOT_PLAIN."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else NOT_PLAIN
    if isinstance(value, ms.Type):
        return str(value)
    if isinstance(value, Tensor) and not isinstance(value, Parameter) and value.size == 1:
        # Hyper-parameters are often kept as scalar tensors; float32 makes 0.1 look like
        # 0.10000000149, so that the shortest text that means the same float32 is taken.
        return float(str(value.asnumpy().reshape(())[()]))
    if isinstance(value, (tuple, list)) and len(value) <= 16:
        entries = tuple(plain_value(entry) for entry in value)
        return NOT_PLAIN if any(entry is NOT_PLAIN for entry in entries) else entries
    return NOT_PLAIN


# `training` has a field of its own.
_EVERY_CELL = frozenset(vars(nn.Cell()))
