"""Error against depth: how far each layer's tensor lies from the reference's, and what rounding allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paritydbg.model.comparison import Comparison, Metrics, Verdict
from paritydbg.model.event import Phase, Role
from paritydbg.model.report import Report
from paritydbg.report.html.elements import Markup, tag
from paritydbg.report.html.marks import MARKS

_WIDTH, _HEIGHT, _LEFT, _TOP = 1000, 260, 64, 14
# More points than this are not told apart on a screen; of those that share a place the furthest over
# its allowance is kept.
_MOST_POINTS = 500
# What is equal to the last bit is drawn at the bottom of a scale that is logarithmic.
_FLOOR = 1e-9
_ROLES = {Phase.FORWARD: (Role.OUTPUT, Role.LOSS), Phase.BACKWARD: (Role.GRAD_OUTPUT,)}
_TITLES = {
    Phase.FORWARD: "Forward: outputs of layers, in order of execution",
    Phase.BACKWARD: "Backward: gradients of layers' outputs, in order of execution (last layer first)",
}


@dataclass(frozen=True)
class Point:
    """One tensor: where it comes in the order, how far apart the sides are, what is allowed (relative)."""

    place: str
    far: float
    allowed: float
    verdict: Verdict


def depth_plots(report: Report) -> Markup:
    """The plots of the first captured step that has any, forward and backward."""
    plots = [plot for phase in _ROLES if (plot := _plot(phase, points_of(report, phase)))]
    return tag("div", *plots) if plots else Markup("")


def points_of(report: Report, phase: Phase) -> tuple[Point, ...]:
    """The first step's tensors of a phase that have numbers, in order of execution."""
    chosen = [
        one
        for one in report.comparisons
        if one.pair.first.key.phase is phase and one.pair.first.key.role in _ROLES[phase]
    ]
    first = min((one.pair.first.key.step for one in chosen if one.metrics), default=0)
    return tuple(
        _point(one, one.metrics)
        for one in chosen
        if one.metrics is not None and one.pair.first.key.step == first
    )


def _point(comparison: Comparison, metrics: Metrics) -> Point:
    allowance = comparison.allowance
    allowed = allowance.l2 / metrics.reference_l2 if allowance and metrics.reference_l2 else 0.0
    return Point(comparison.pair.first.key.place, metrics.relative_l2, allowed, comparison.verdict)


def thinned(points: Sequence[Point], most: int = _MOST_POINTS) -> tuple[tuple[int, Point], ...]:
    """At most so many points with their places in the order; of each stretch the one that matters most."""
    size = max(1, math.ceil(len(points) / most))
    kept = []
    for start in range(0, len(points), size):
        stretch = range(start, min(start + size, len(points)))
        kept.append(max(stretch, key=lambda at: (MARKS[points[at].verdict].weight, points[at].far)))
    return tuple((at, points[at]) for at in kept)


def _plot(phase: Phase, points: Sequence[Point]) -> Markup | None:
    if not points:
        return None
    chosen = thinned(points)
    seen = [v for _, p in chosen for v in (p.far, p.allowed) if _FLOOR < v < math.inf]
    low = math.floor(math.log10(min([*seen, 1e-7])))
    high = math.ceil(math.log10(max([*seen, 1e-3])))

    def x(at: int) -> float:
        return _LEFT + (at + 0.5) / len(points) * (_WIDTH - _LEFT)

    def y(value: float) -> float:
        level = math.log10(min(max(value, 10.0**low), 10.0**high)) if value == value else high
        return _TOP + (high - level) / (high - low) * _HEIGHT

    band = "L".join(f"{x(at):.1f} {y(p.allowed):.1f}" for at, p in chosen)
    bottom = _TOP + _HEIGHT
    ends = f"{x(chosen[-1][0]):.1f} {bottom}L{x(chosen[0][0]):.1f} {bottom}"
    first = next((at for at, p in chosen if MARKS[p.verdict].kind == "diverged"), None)
    drawn = tag(
        "svg",
        *_scale(low, high, y),
        tag("path", d=f"M{band}L{ends}Z", class_="band"),
        tag("path", d=f"M{band}", class_="allowed"),
        *(() if first is None else (_flag(x(first), points[first].place),)),
        *(_dot(x(at), y(p.far), p) for at, p in chosen),
        viewBox=f"0 0 {_WIDTH + 4} {bottom + 26}",
        role="img",
        aria_label=f"{_TITLES[phase]}. {_spoken(points)}",
    )
    note = (
        ""
        if len(chosen) == len(points)
        else f" {len(points):,} tensors, the worst of each stretch."
    )
    return tag(
        "figure",
        tag("figcaption", tag("strong", _TITLES[phase]), f". {_spoken(points)}{note}"),
        tag("div", drawn, class_="plot", tabindex="0"),
        class_="depth",
    )


def _scale(low: int, high: int, y: Callable[[float], float]) -> list[Markup]:
    lines = []
    for power in range(low, high + 1, max(1, (high - low) // 6)):
        at = y(10.0**power)
        lines.append(
            tag("line", x1=_LEFT, x2=_WIDTH, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="grid")
        )
        words = "100 %" if power == 0 else f"1e{power}"
        lines.append(tag("text", words, x=_LEFT - 8, y=f"{at + 4:.1f}", text_anchor="end"))
    title = "relative error"
    middle = _TOP + _HEIGHT / 2
    lines.append(tag("text", title, x=0, y=0, transform=f"translate(14 {middle + 40}) rotate(-90)"))
    lines.append(tag("text", "first", x=_LEFT, y=_TOP + _HEIGHT + 18))
    lines.append(tag("text", "last", x=_WIDTH, y=_TOP + _HEIGHT + 18, text_anchor="end"))
    return lines


def _flag(x: float, place: str) -> Markup:
    """A line at the first divergence, its name beside it on the side that has room."""
    right = x < _WIDTH / 2
    return tag(
        "g",
        tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=_TOP, y2=_TOP + _HEIGHT, class_="first"),
        tag(
            "text",
            place if len(place) <= 48 else f"…{place[-47:]}",
            x=f"{x + 6 if right else x - 6:.1f}",
            y=_TOP + 12,
            text_anchor=None if right else "end",
            class_="flag",
        ),
    )


def _dot(x: float, y: float, point: Point) -> Markup:
    """A point in the shape of its verdict: cross, triangle, diamond, circle."""
    kind = MARKS[point.verdict].kind
    shapes = {
        "diverged": f"M{x - 6:.1f} {y - 6:.1f}l12 12m0 -12l-12 12",
        "inherited": f"M{x:.1f} {y + 4:.1f}l-4.5 -8h9Z",
        "suspect": f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5Z",
    }
    words = f"{point.place}: {point.far:.2e}, allowed {point.allowed:.2e}, {point.verdict.value}"
    title = tag("title", words)
    if kind in shapes:
        return tag("path", title, d=shapes[kind], class_=f"dot {kind}")
    return tag("circle", title, cx=f"{x:.1f}", cy=f"{y:.1f}", r="3", class_=f"dot {kind}")


def _spoken(points: Sequence[Point]) -> str:
    """What the plot shows, in a sentence."""
    over = sum(1 for p in points if not p.far <= p.allowed)
    first = next((p for p in points if MARKS[p.verdict].kind == "diverged"), None)
    band = "the grey band, which rounding and what came in explain"
    if not over and first is None:
        return f"All {len(points):,} lie in {band}."
    share = f"{over:,} of {len(points):,} leave {band}"
    return f"{share}{f'; the first origin is {first.place}, at {first.far:.1e}' if first else ''}."
