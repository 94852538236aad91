"""Says of a suspect what it can be: a kernel's accuracy alone, or a small constant that hides in it."""

from __future__ import annotations

from dataclasses import replace

from paritydbg.explain.context import Context
from paritydbg.model.comparison import Verdict
from paritydbg.model.finding import Finding
from paritydbg.model.record import LayerRecord

_FRAMEWORKS = ("torch.", "mindspore.")


def with_accuracy(finding: Finding, context: Context) -> Finding:
    """A suspect in words: above rounding, below what matters, and of no cause that was found."""
    if finding.verdict is not Verdict.SUSPECT or finding.attributes or finding.causes:
        return finding
    metrics = finding.evidence.metrics if finding.evidence is not None else None
    if metrics is None:
        return finding
    size = f"{finding.place} differs by {metrics.relative_l2:.1e} of its size"
    reference, port = context.layers_of(finding)
    if _built_in(reference) and _built_in(port):
        what = "only kernel accuracy: the frameworks' own layers were told the same"
    else:
        what = "kernel accuracy, or a small constant (an epsilon) in code of its own"
    return replace(finding, summary=f"{size}, above rounding and below what matters: {what}")


def _built_in(layer: LayerRecord | None) -> bool:
    return layer is not None and layer.leaf and layer.api.startswith(_FRAMEWORKS)
