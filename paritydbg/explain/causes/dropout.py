"""Causes in dropout: the share that each side keeps and the factor that goes with it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context
from paritydbg.measure.masks import Mask, mask_of
from paritydbg.model.finding import Cause, Finding


def dropout_causes(_finding: Finding, _context: Context, site: Site) -> Iterable[Cause]:
    """Another rate, or dropout that is active on one side alone."""
    for source in site.sources:
        if source.port.shape != site.port.shape:
            continue
        mine, yours = mask_of(site.reference, source.reference), mask_of(site.port, source.port)
        if mine is None and yours is None:
            continue
        shown = f"of {source.words}: reference {_told(mine)}, port {_told(yours)}"
        if mine is not None and yours is not None:
            if abs(mine.factor - yours.factor) <= 1e-3 * mine.factor:
                yield Cause(
                    "seed-differs",
                    "both sides drop at one rate, with other masks; record both with --no-dropout",
                    shown,
                    0.9,
                )
            else:
                yield Cause(
                    "dropout-keep-prob",
                    f"the port keeps {1 / yours.factor:.4g} of its values, the reference "
                    f"{1 / mine.factor:.4g}: mindspore.nn.Dropout's first argument is keep_prob; "
                    f"write p={1 - 1 / mine.factor:.4g}",
                    shown,
                    0.95,
                )
            return
        plain = site.port if mine is not None else site.reference
        untouched = source.port if mine is not None else source.reference
        if np.allclose(plain, untouched, rtol=1e-5, atol=1e-7):
            yield Cause(
                "train-mode-not-set" if mine is not None else "dropout-active-in-eval",
                "dropout is active in the reference alone: call set_train(True)"
                if mine is not None
                else "dropout is active in the port alone: call set_train(False)",
                shown,
                0.95,
            )
            return


def _told(mask: Mask | None) -> str:
    if mask is None:
        return "nothing is dropped"
    return f"{mask.kept:.1%} kept, times {mask.factor:.4g}"
