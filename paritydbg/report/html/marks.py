"""How a verdict looks: a mark and a word beside every colour, so that no reader depends on colour."""

from __future__ import annotations

from dataclasses import dataclass

from paritydbg.model.comparison import Verdict
from paritydbg.report.html.elements import Markup, tag


@dataclass(frozen=True)
class Mark:
    """One verdict's looks.

    Attributes:
        sign: one character that tells it without colour.
        kind: the class that colours it.
        words: what it means, for a legend.
        weight: how much it matters; of several verdicts the heaviest is shown.
    """

    sign: str
    kind: str
    words: str
    weight: int


MARKS = {
    Verdict.MATCH: Mark("✓", "match", "equal within rounding", 1),
    Verdict.UNTESTED: Mark("–", "untested", "not compared", 0),
    Verdict.INHERITED: Mark("↓", "inherited", "differs because of something before it", 2),
    Verdict.SUSPECT: Mark("?", "suspect", "above the noise, too small to matter", 3),
    Verdict.UNPAIRED: Mark("∅", "diverged", "only one side has it", 4),
    Verdict.DTYPE: Mark("≠", "diverged", "another dtype", 5),
    Verdict.SHAPE: Mark("≠", "diverged", "another shape", 6),
    Verdict.NONFINITE: Mark("∞", "diverged", "NaN or Inf on one side", 7),
    Verdict.DIVERGED: Mark("✗", "diverged", "differs though its inputs agree: an origin", 8),
}


def badge(verdict: Verdict) -> Markup:
    """A verdict as its mark, with the word for those who cannot see it."""
    mark = MARKS[verdict]
    return tag(
        "span",
        mark.sign,
        class_=f"badge {mark.kind}",
        role="img",
        aria_label=verdict.value,
        title=f"{verdict.value}: {mark.words}",
    )


def legend() -> Markup:
    """The marks that the tree and the plot use, in words."""
    chosen = (
        Verdict.DIVERGED,
        Verdict.INHERITED,
        Verdict.SUSPECT,
        Verdict.MATCH,
        Verdict.UNTESTED,
    )
    items = (tag("li", badge(one), f" {MARKS[one].words}") for one in chosen)
    return tag("ul", *items, class_="legend")
