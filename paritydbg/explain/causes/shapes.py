"""Causes of outputs of another shape: which axis differs, and where that is usual."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from paritydbg.explain.context import Context, layer_part
from paritydbg.model.comparison import Verdict
from paritydbg.model.finding import Cause, Finding


def shape_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What two shapes tell where values cannot be compared."""
    evidence = finding.evidence
    if evidence is None or evidence.verdict is not Verdict.SHAPE:
        return
    if len(evidence.pair.reference) != 1 or len(evidence.pair.port) != 1:
        return
    mine, yours = evidence.pair.reference[0].shape, evidence.pair.port[0].shape
    shown = f"reference {mine}, port {yours}"
    if sorted(mine) == sorted(yours):
        for order in permutations(range(len(mine))):
            if tuple(mine[i] for i in order) == yours:
                yield Cause(
                    "layout-nhwc-nchw",
                    f"the port's axes lie in another order: as after transpose{order}",
                    shown,
                    0.8,
                )
                return
    if len(mine) != len(yours):
        return
    differs = [axis for axis, (a, b) in enumerate(zip(mine, yours, strict=True)) if a != b]
    if _attention(finding, context) and differs in ([1], [1, 3], [2, 3]) and len(mine) == 4:
        yield Cause(
            "num-heads-mismatch",
            f"the port splits into {yours[differs[0]]} heads, the reference into {mine[differs[0]]}",
            shown,
            0.85,
        )
    elif 1 in differs and len(differs) == 1:
        yield Cause(
            "channels-differ",
            f"the port has {yours[1]} channels here, the reference {mine[1]}",
            shown,
            0.4,
        )


def _attention(finding: Finding, context: Context) -> bool:
    """Whether the place lies in something that is called attention."""
    name = layer_part(finding.place)
    while name:
        layer = context.layer(name)
        if layer is not None and "att" in f"{layer.type} {layer.name.rpartition('.')[2]}".lower():
            return True
        name = name.rpartition(".")[0]
    return False
