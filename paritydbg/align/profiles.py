"""What is known of a side's layers apart from their names: kind, what they own, who is whose alias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paritydbg.model.record import RunRecord
from paritydbg.weights.families import family, kind
from paritydbg.weights.tree import Signature, build_tree

# Kinds whose inner layers are the framework's own affair: mindspore.nn.LSTM has cells inside,
# torch.nn.LSTM has not.
_WHOLE = frozenset({"recurrent", "attention", "norm"})


@dataclass(frozen=True)
class Profile:
    """One layer as alignment sees it.

    Attributes:
        family, kind: of its type; see `weights.families`.
        own: the parameters it owns.
        unit: whether it is aligned as one piece: a leaf, or a layer whose inside does not matter.
        container: no leaf and owner of nothing.
    """

    family: str
    kind: str
    own: Signature
    unit: bool
    container: bool


def profiles(run: RunRecord) -> dict[str, Profile]:
    """A profile of every layer, by name."""
    tree = build_tree(run.layers, run.parameters)
    found: dict[str, Profile] = {}
    whole: set[str] = set()
    for layer in run.layers:
        node = tree.nodes[layer.name]
        inside = any(name in whole for name in _outer(layer.name))
        of_kind = kind(layer.type)
        if not layer.leaf and of_kind in _WHOLE:
            whole.add(layer.name)
        unit = not inside and (layer.leaf or layer.name in whole)
        container = not layer.leaf and not node.own
        found[layer.name] = Profile(family(layer.type), of_kind, node.own, unit, container)
    return found


def first_names(run: RunRecord) -> dict[str, str]:
    """Every layer's name -> the name that its events bear."""
    return {layer.name: layer.alias_of or layer.name for layer in run.layers}


def first_parameter_names(run: RunRecord) -> dict[str, str]:
    """Every parameter's name -> the name that its events bear."""
    return {parameter.name: parameter.tied_to or parameter.name for parameter in run.parameters}


def fallback(known: Mapping[str, Profile], name: str) -> Profile:
    """The layer's profile; a layer that was captured and is not in the records counts as a leaf."""
    return known.get(name) or Profile("", "", (), True, False)


def _outer(name: str) -> list[str]:
    parts = name.split(".") if name else []
    return [".".join(parts[:length]) for length in range(len(parts))]
