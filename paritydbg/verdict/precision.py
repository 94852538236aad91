"""Whether the two sides compute in one precision at all: a setting, seen in the dtypes of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paritydbg.measure.precision import unit_roundoff
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Role
from paritydbg.model.finding import Finding, Stage

# float16 against bfloat16 is a factor of eight.
_ANOTHER = 4.0


def precision_findings(compared: Sequence[Comparison], layers: Mapping[str, str]) -> list[Finding]:
    """One finding where the coarsest dtype of any output is another one on the two sides.

    Which layers mixed precision leaves in float32 is each framework's own choice; whether there is
    any is the user's.
    """
    outputs = [c for c in compared if c.pair.first.key.role is Role.OUTPUT]
    coarsest = (
        max((unit_roundoff(e.dtype) for c in outputs for e in c.pair.reference), default=0.0),
        max((unit_roundoff(e.dtype) for c in outputs for e in c.pair.port), default=0.0),
    )
    if not all(coarsest) or max(coarsest) < _ANOTHER * min(coarsest):
        return []
    for comparison in outputs:
        one, other = comparison.pair.first, comparison.pair.port[0]
        units = unit_roundoff(one.dtype), unit_roundoff(other.dtype)
        if units[0] != units[1] and max(units) == max(coarsest):
            return [
                Finding(
                    stage=Stage.CONFIG,
                    verdict=Verdict.DTYPE,
                    place=one.key.place,
                    port_place=layers.get(one.key.name, other.key.name),
                    summary=f"{one.key.place} gives {one.dtype} in the reference and {other.dtype} in "
                    "the port: the two sides compute in another precision",
                    step=one.key.step,
                    static=True,
                )
            ]
    return []
