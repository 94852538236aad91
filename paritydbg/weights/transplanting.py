"""Moves weights from one net, dump or file into another net; who goes with whom comes from `pairing`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.adapters import Adapter, adapter_for
from paritydbg.errors import UsageError, WeightsError
from paritydbg.model.pair import ParameterPair
from paritydbg.model.record import ParameterRecord
from paritydbg.weights.archives import write_npz
from paritydbg.weights.files import read_weights, side_of
from paritydbg.weights.pairing import Side, pair_parameters
from paritydbg.weights.rules import DROPPED, Rename

Array = NDArray[Any]

# Endings of files the port can be saved to -> the adapter that writes them ("" for numpy).
_WRITERS = {".ckpt": "mindspore", ".pth": "torch", ".pt": "torch", ".npz": ""}


@dataclass(frozen=True)
class Transplanted:
    """Weights in the port's names and layout, and what became of every name.

    Attributes:
        values: the port's name -> array of the port's shape and (for floats) dtype.
        renamed: (reference's name, port's name) where they differ.
        reshaped: (reference's name, port's name, what was done) where the layout differs.
        left_in_reference: names whose values went nowhere.
        left_in_port: names that got no value and keep their own.
        notes: remarks in sentences, for a person or a dump.
    """

    values: Mapping[str, Array]
    renamed: tuple[tuple[str, str], ...] = ()
    reshaped: tuple[tuple[str, str, str], ...] = ()
    left_in_reference: tuple[str, ...] = ()
    left_in_port: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def fit(
    pairs: Sequence[ParameterPair],
    reference_values: Mapping[str, Array],
    port_parameters: Sequence[ParameterRecord],
    reference_parameters: Sequence[ParameterRecord] = (),
) -> Transplanted:
    """The reference's values in the port's layout.

    Floats are converted to the port's float dtype, whole numbers to its integer dtype. A tensor that
    the port holds under several names gets its value under the first.

    Args:
        pairs: as `pair_parameters` gives them.
        reference_values: by the reference's names; a tied tensor under its first name is enough
            where ``reference_parameters`` tells of the tie.

    Raises:
        WeightsError: a pair whose shapes cannot be made to fit, with both names and shapes.
    """
    port = {parameter.name: parameter for parameter in port_parameters}
    ties = {p.name: p.tied_to for p in reference_parameters if p.tied_to}
    values: dict[str, Array] = {}
    renamed: list[tuple[str, str]] = []
    reshaped: list[tuple[str, str, str]] = []
    notes: list[str] = []
    used: set[str] = set()
    converted: dict[tuple[str, str], int] = {}
    for pair in pairs:
        names = [n if n in reference_values else ties.get(n, n) for n in pair.reference]
        if any(name not in reference_values for name in names):
            continue
        used.update((*names, *pair.reference))
        arrays = _transformed(pair, [np.asarray(reference_values[name]) for name in names])
        for name, array in zip(pair.port, arrays, strict=True):
            record = port[name]
            if array.shape != record.shape:
                raise WeightsError(_misfit(pair, [reference_values[n].shape for n in names], port))
            home = record.tied_to or name
            fitted = _converted(array, record)
            if fitted.dtype != array.dtype:
                step = (str(array.dtype), str(fitted.dtype))
                converted[step] = converted.get(step, 0) + 1
            if home in values:
                if not np.array_equal(values[home], fitted):
                    notes.append(
                        f"the port ties {name} to {home}, the reference has two different tensors; "
                        f"the one of {home} was taken"
                    )
                continue
            values[home] = fitted
        if len(pair.reference) == len(pair.port) == 1 and pair.reference != pair.port:
            renamed.append((pair.reference[0], pair.port[0]))
        done = pair.transform.describe()
        if done:
            reshaped.append((", ".join(pair.reference), ", ".join(pair.port), done))
    notes += [f"{n} tensors converted from {a} to {b}" for (a, b), n in converted.items()]
    left_in_reference = [
        name for name in reference_values if name not in used and _last(name) not in DROPPED
    ]
    left_in_port = [name for name, p in port.items() if (p.tied_to or name) not in values]
    if left_in_reference:
        notes.append(f"left over in the reference: {', '.join(left_in_reference)}")
    if left_in_port:
        notes.append(f"not given a value, kept as the port has it: {', '.join(left_in_port)}")
    return Transplanted(
        values,
        tuple(renamed),
        tuple(reshaped),
        tuple(left_in_reference),
        tuple(left_in_port),
        tuple(notes),
    )


def transplant(
    weights: str | os.PathLike[str] | Mapping[str, Array],
    into: object,
    out: str | os.PathLike[str] | None = None,
    *,
    rename: Sequence[Rename] = (),
    user_map: Mapping[str, str] | None = None,
) -> Transplanted:
    """Give a net the weights of another one, and save it if asked to.

    Args:
        weights: a dump (its parameters before the first step), ``.safetensors``, ``.npz``, ``.pth``,
            ``.pt`` or ``.ckpt``; or a mapping from name to array.
        into: the net, changed in place; or ``package.module:make_net``, a function without
            arguments (or a class) that makes it.
        out: ``.ckpt``, ``.pth`` or ``.npz`` to write the net's weights to, atomically.
        rename: rules from the weights' names to the net's, pairs of pattern and replacement.
        user_map: the weights' name -> the net's name, for those that rules do not find.

    Returns:
        what was moved where, and what was left over on either side.

    Raises:
        WeightsError: weights that cannot be read, that do not fit, or none of which fits.
        UsageError: a net, ending, rule or map that cannot be used.
        AdapterError: the framework that a file needs is missing.
    """
    reference = side_of(weights) if isinstance(weights, Mapping) else read_weights(weights)
    net = net_from(into) if isinstance(into, str) else into
    adapter = adapter_for(net)
    save = _saver(os.fspath(out), adapter) if out is not None else None
    layers, parameters = adapter.structure({"": net})
    own = adapter.read_parameters(net)
    pairs = pair_parameters(
        reference,
        Side(layers, parameters, own),
        rename=rename,
        user_pairs=tuple((user_map or {}).items()),
    )
    moved = fit(pairs, reference.values, parameters, reference.parameters)
    if not moved.values:
        raise WeightsError(
            f"none of the {len(reference.parameters)} tensors fits a parameter of the net "
            f"({_some(reference.parameters)} against {_some(parameters)}); name pairs with "
            "rename rules or a map"
        )
    adapter.write_parameters(net, moved.values)
    if save is not None:
        save(net)
    return moved


def net_from(address: str) -> object:
    """The net that ``package.module:make_net`` makes; the working directory is searched as well.

    Raises:
        UsageError: no such module or function, or it needs arguments.
    """
    module_name, sign, name = address.partition(":")
    if not sign or not module_name or not name:
        raise UsageError(
            f"{address!r} is not package.module:make_net; name a function after a colon"
        )
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{module_name} cannot be imported ({error}); run from the folder that holds it"
        ) from error
    make = getattr(module, name, None)
    if not callable(make):
        raise UsageError(f"{module_name} has no function {name!r}; name the one that makes the net")
    try:
        return make()
    except TypeError as error:
        raise UsageError(
            f"{address} could not be called without arguments ({error}); name a function that "
            "needs none"
        ) from error


def _transformed(pair: ParameterPair, arrays: Sequence[Array]) -> tuple[Array, ...]:
    try:
        return pair.transform.apply(arrays)
    except ValueError as error:
        raise WeightsError(f"{_names(pair)}: {error}") from error


def _misfit(
    pair: ParameterPair, shapes: Sequence[tuple[int, ...]], port: Mapping[str, ParameterRecord]
) -> str:
    mine = ", ".join(str(tuple(shape)) for shape in shapes)
    yours = ", ".join(str(port[name].shape) for name in pair.port)
    return (
        f"{_names(pair)}: shape {mine} does not fit {yours}; mend the port, or name another pair "
        "with --rename or --map"
    )


def _names(pair: ParameterPair) -> str:
    return f"{', '.join(pair.reference)} -> {', '.join(pair.port)}"


def _converted(array: Array, record: ParameterRecord) -> Array:
    """The array in the port's dtype where both are floats or both integers; bfloat16 as float32."""
    wanted = np.dtype("float32" if record.dtype == "bfloat16" else record.dtype)
    pair_of_kinds = array.dtype.kind, wanted.kind
    if wanted == array.dtype or not (
        pair_of_kinds == ("f", "f") or set(pair_of_kinds) <= {"i", "u"}
    ):
        return array
    return array.astype(wanted)


def _saver(out: str, adapter: Adapter) -> Callable[[object], None]:
    """What writes a net to the path, refused early where the ending does not suit."""
    ending = os.path.splitext(out)[1].lower()
    if ending not in _WRITERS:
        raise UsageError(f"cannot write {out!r}: its ending must be one of {', '.join(_WRITERS)}")
    wanted = _WRITERS[ending]
    if not wanted:
        return lambda net: write_npz(out, adapter.read_parameters(net))
    if wanted != adapter.name:
        raise UsageError(
            f"cannot write {out!r}: that is {wanted}'s format and the net is of {adapter.name}; "
            f"choose .npz or the ending of {adapter.name}"
        )
    return lambda net: adapter.write_weights_file(out, net)


def _some(parameters: Sequence[ParameterRecord]) -> str:
    names = [parameter.name for parameter in parameters[:3]]
    return ", ".join(names) + (" …" if len(parameters) > 3 else "")


def _last(name: str) -> str:
    return name.rpartition(".")[2]
