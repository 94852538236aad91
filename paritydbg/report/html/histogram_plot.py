"""Histograms of a finding's tensors: both sides over each other, and their difference."""

from __future__ import annotations

from paritydbg.model.closeup import Closeup, Histogram
from paritydbg.report.html.elements import Markup, tag

_WIDTH, _HEIGHT = 320, 110


def histograms(closeup: Closeup) -> Markup:
    """Two small plots side by side."""
    both = _plot(
        "values (reference filled, port as a line), counts on a square-root scale",
        closeup.reference,
        (("bars", closeup.reference), ("steps", closeup.port)),
    )
    apart = _plot("port − reference", closeup.difference, (("bars apart", closeup.difference),))
    sampled = ""
    if closeup.looked_at < closeup.count:
        sampled = f"{closeup.looked_at:,} of {closeup.count:,} elements counted"
    note = tag("p", sampled, class_="small") if sampled else ""
    return tag("div", both, apart, note, class_="histograms")


def _plot(title: str, frame: Histogram, layers: tuple[tuple[str, Histogram], ...]) -> Markup:
    if len(frame.counts) == 1:
        words = f"{title}: all {frame.counts[0]:,} near {frame.low:.6g}"
        return tag("figure", tag("figcaption", words))
    most = max(max(one.counts) for _, one in layers) or 1
    shapes = [_shape(kind, one, most) for kind, one in layers]
    drawn = tag(
        "svg",
        *shapes,
        tag("line", x1=0, x2=_WIDTH, y1=_HEIGHT, y2=_HEIGHT, class_="axis"),
        tag("text", f"{frame.low:.4g}", x=0, y=_HEIGHT + 14),
        tag("text", f"{frame.high:.4g}", x=_WIDTH, y=_HEIGHT + 14, text_anchor="end"),
        viewBox=f"0 -4 {_WIDTH} {_HEIGHT + 22}",
        role="img",
        aria_label=f"{title}, from {frame.low:.4g} to {frame.high:.4g}",
    )
    return tag("figure", drawn, tag("figcaption", title))


def _shape(kind: str, histogram: Histogram, most: int) -> Markup:
    """The counts as one path; a filled one goes back along the axis."""
    step = _WIDTH / len(histogram.counts)
    points = []
    for number, count in enumerate(histogram.counts):
        # The square root keeps a few far outliers visible beside a tall middle.
        y = _HEIGHT * (1 - (count / most) ** 0.5)
        points += [f"{number * step:.1f} {y:.1f}", f"{(number + 1) * step:.1f} {y:.1f}"]
    return tag("path", d=f"M0 {_HEIGHT}L" + "L".join(points) + f"L{_WIDTH} {_HEIGHT}", class_=kind)
