"""Causes of forward findings: every group of hypotheses, tried on the captured values in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paritydbg.explain.causes.activations import activation_causes
from paritydbg.explain.causes.attention import attention_causes
from paritydbg.explain.causes.dropout import dropout_causes
from paritydbg.explain.causes.gated import gated_causes
from paritydbg.explain.causes.indices import index_causes
from paritydbg.explain.causes.linear import linear_causes
from paritydbg.explain.causes.masks import mask_causes
from paritydbg.explain.causes.norms import norm_causes
from paritydbg.explain.causes.pooled import pooled_causes
from paritydbg.explain.causes.recurrent import recurrent_causes
from paritydbg.explain.causes.resizing import resize_causes
from paritydbg.explain.causes.rotary import rotary_causes
from paritydbg.explain.causes.shapes import shape_causes
from paritydbg.explain.causes.site import Site, site_of
from paritydbg.explain.causes.windows import pool_causes
from paritydbg.explain.causes.wiring import wiring_causes
from paritydbg.explain.context import Context
from paritydbg.model.finding import Cause, Finding, Stage

_GROUPS: tuple[Callable[[Finding, Context, Site], Iterable[Cause]], ...] = (
    index_causes,
    dropout_causes,
    activation_causes,
    gated_causes,
    norm_causes,
    linear_causes,
    pool_causes,
    resize_causes,
    mask_causes,
    rotary_causes,
    attention_causes,
    recurrent_causes,
    pooled_causes,
    wiring_causes,
)

# From here on no further group is asked.
_SURE = 0.9


def forward_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What the values at the place themselves tell."""
    if finding.stage not in (Stage.FORWARD, Stage.CONFIG) or finding.static:
        return
    yield from shape_causes(finding, context)
    site = site_of(finding, context)
    if site is None:
        return
    # Without a difference in numbers there is nothing to recalculate, only NaN to explain.
    for group in _GROUPS if site.gap else (mask_causes,):
        found = tuple(group(finding, context, site))
        yield from found
        # What follows is dearer, or reads the same values less precisely.
        if any(cause.confidence >= _SURE for cause in found):
            return
