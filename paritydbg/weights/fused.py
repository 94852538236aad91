"""Parameters that one side holds in one tensor and the other in several, told by names and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paritydbg.model.pair import ParameterPair
from paritydbg.model.record import ParameterRecord
from paritydbg.model.transform import Transform
from paritydbg.weights.rules import FUSED, PARTS, canonical_component, canonical_parameter

# Where something lies: the layer around the projections, and what the parameter is.
Home = tuple[str, str]

_PREFIXED = {"in_proj_weight": "weight", "in_proj_bias": "bias"}


def pair_fused(
    reference: Iterable[ParameterRecord],
    port: Iterable[ParameterRecord],
    home: Callable[[str], str],
) -> list[ParameterPair]:
    """Pairs of q, k, v against their fused projection, and likewise for gates, either way round.

    Args:
        reference, port: the parameters that have no partner yet.
        home: the port's name for a layer of the reference.
    """
    mine, yours = list(reference), list(port)
    pairs = []
    for whole, parts in _joined(mine, yours, home):
        names = tuple(part.name for part in parts)
        transform = Transform("concatenate", axis=0)
        pairs.append(ParameterPair(names, (whole.name,), transform, "rule", 0.85))
    for whole, parts in _joined(yours, mine, None, home):
        sections = tuple(part.shape[0] for part in parts)
        transform = Transform("split", axis=0, sections=sections)
        names = tuple(part.name for part in parts)
        pairs.append(ParameterPair((whole.name,), names, transform, "rule", 0.85))
    return pairs


def _joined(
    several: list[ParameterRecord],
    single: list[ParameterRecord],
    home_of_several: Callable[[str], str] | None,
    home_of_single: Callable[[str], str] | None = None,
) -> list[tuple[ParameterRecord, list[ParameterRecord]]]:
    """Each fused parameter with the parts that make it, in order; shapes must add up."""
    roles: dict[tuple[Home, str], ParameterRecord] = {}
    for parameter in several:
        outer, last = _split(parameter.layer)
        role = PARTS.get(last.lower()) or PARTS.get(canonical_component(last))
        if role:
            place = home_of_several(outer) if home_of_several else outer
            what = canonical_parameter(parameter.name.rpartition(".")[2])
            roles[(place, what), role] = parameter
    found = []
    for parameter in single:
        for home, wanted in _fused_homes(parameter):
            place = home_of_single(home[0]) if home_of_single else home[0]
            parts = [roles.get(((place, home[1]), role)) for role in wanted]
            given = [part for part in parts if part is not None]
            if len(given) == len(wanted) and _adds_up(parameter, given):
                found.append((parameter, given))
                break
    return found


def _fused_homes(parameter: ParameterRecord) -> list[tuple[Home, tuple[str, ...]]]:
    """Where the parts of a fused parameter would lie, and which; empty for any other parameter."""
    last = parameter.name.rpartition(".")[2]
    if last in _PREFIXED:
        return [((parameter.layer, _PREFIXED[last]), ("q", "k", "v"))]
    outer, layer = _split(parameter.layer)
    wanted = FUSED.get(layer.lower())
    return [((outer, canonical_parameter(last)), wanted)] if wanted else []


def _adds_up(whole: ParameterRecord, parts: list[ParameterRecord]) -> bool:
    if not whole.shape or any(part.shape[1:] != whole.shape[1:] for part in parts):
        return False
    return sum(part.shape[0] for part in parts if part.shape) == whole.shape[0]


def _split(layer: str) -> tuple[str, str]:
    outer, _, last = layer.rpartition(".")
    return outer, last
