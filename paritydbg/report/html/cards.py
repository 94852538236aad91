"""A finding as a card: the sentences that every report has, then its tensors at close range."""

from __future__ import annotations

from paritydbg.model.closeup import Closeup
from paritydbg.model.finding import Finding
from paritydbg.model.report import Report
from paritydbg.report.html.elements import Markup, tag
from paritydbg.report.html.histogram_plot import histograms
from paritydbg.report.html.marks import badge
from paritydbg.report.lines import Line, finding_lines, where


def card(number: str, finding: Finding, report: Report) -> Markup:
    """Everything that is known about one finding."""
    title = tag(
        "h3",
        badge(finding.verdict),
        f" {number}. ",
        tag("span", finding.place, class_="place"),
        " ",
        tag("span", f"({where(finding)}, {finding.verdict.value})", class_="kind"),
    )
    look = finding.closeup
    close = [_close(look)] if look is not None else []
    anchor = f"finding-{number}"
    lines = _told(finding_lines(finding, report))
    return tag("article", title, lines, *close, class_="card", id=anchor.replace(" ", "-"))


def _told(lines: tuple[Line, ...]) -> Markup:
    """The sentences as a list of terms; what has no label goes on with the one before."""
    parts: list[Markup] = []
    for line in lines:
        if line.label:
            parts.append(tag("dt", line.label))
        shown = _code(line.text) if line.code else line.text
        parts.append(tag("dd", shown, class_=None if line.label else "more"))
    return tag("dl", *parts)


def _code(code: str) -> Markup:
    button = tag("button", "Copy", type="button", class_="copy", data_copy=code)
    return tag("span", tag("code", code), button, class_="paste")


def _close(look: Closeup) -> Markup:
    rows = (
        tag(
            "tr",
            tag("td", str(list(one.index))),
            tag("td", f"{one.reference:.7g}"),
            tag("td", f"{one.port:.7g}"),
            tag("td", f"{one.port - one.reference:+.2e}"),
        )
        for one in look.worst
    )
    head = tag("tr", *(tag("th", n, scope="col") for n in ("index", "reference", "port", "apart")))
    table = tag("table", tag("caption", "where they part most"), tag("thead", head), *rows)
    worst = [tag("div", table, class_="scroll")] if look.worst else []
    summary = tag("summary", "The two tensors at close range")
    return tag("details", summary, histograms(look), *worst, open=True, class_="close")
