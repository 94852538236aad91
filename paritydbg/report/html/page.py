"""The page: the verdict in a sentence, the plots, the findings, the tree, what was not compared, how."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from paritydbg.model.record import RunRecord
from paritydbg.model.report import Report
from paritydbg.report.html.cards import card
from paritydbg.report.html.depth_plot import depth_plots
from paritydbg.report.html.elements import Markup, tag
from paritydbg.report.html.marks import legend
from paritydbg.report.html.tree import tree
from paritydbg.report.lines import coverage_text, headline, next_command, run_text

# Cards are long: what lies beyond is in the JSON, and the page says how many.
_MOST_CARDS = 60


def to_html(report: Report) -> str:
    """The report as a whole page, complete in itself; it can load nothing and send nothing."""
    style, script = _file("style.css"), _file("script.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{headline(report)} · paritydbg"),
        tag("style", Markup(style)),
    )
    skip = tag("a", "Skip to the findings", href="#findings", class_="skip")
    body = tag("body", skip, tag("main", _content(report)), tag("script", Markup(script)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def to_fragment(report: Report) -> str:
    """The report for a notebook: the page in a frame of its own, so that neither styles the other."""
    frame = tag(
        "iframe",
        srcdoc=to_html(report),
        sandbox="allow-scripts",
        style="width:100%;height:640px;border:1px solid #8886",
        title=headline(report),
    )
    return str(frame)


def _content(report: Report) -> Markup:
    parts = [
        tag(
            "header",
            tag("h1", headline(report), class_="bad" if report.findings else "good"),
            *_lead(report),
            tag("p", run_text(report.reference, f"reference {report.reference_path}")),
            tag("p", run_text(report.port, f"port {report.port_path}")),
            tag("p", f"{coverage_text(report)}."),
        )
    ]
    plots = depth_plots(report)
    if plots:
        parts.append(_section("depth", "Error against depth", legend(), plots))
    parts.append(_section("findings", "Findings", *_findings(report)))
    parts.append(_section("network", "The network", legend(), tree(report)))
    parts.append(_section("left-out", "What was not compared, and remarks", *_left_out(report)))
    both = (_run("reference", report.reference), _run("port", report.port))
    parts.append(_section("environment", "Environment", tag("div", *both, class_="columns")))
    parts.append(tag("p", "Next: ", tag("code", next_command(report)), class_="next"))
    return Markup("".join(parts))


def _lead(report: Report) -> list[Markup]:
    """The first finding in a breath: what, why, what to write instead."""
    if not report.findings:
        return []
    first = report.findings[0]
    parts: list[object] = [f"{first.summary}."]
    if first.causes:
        parts.append(f" Likely cause: {first.causes[0].summary}.")
    code = next((one.code for one in first.candidates if one.code), "")
    if code:
        parts += [" Write instead: ", tag("code", code)]
    return [tag("p", *parts, class_="lead")]


def _section(anchor: str, title: str, *content: Markup) -> Markup:
    return tag(
        "section",
        tag("h2", title, id=f"{anchor}-title"),
        *content,
        id=anchor,
        aria_labelledby=f"{anchor}-title",
    )


def _findings(report: Report) -> list[Markup]:
    cards = [card(str(n), f, report) for n, f in enumerate(report.findings[:_MOST_CARDS], 1)]
    if not report.findings:
        cards.append(tag("p", "None: nothing parts beyond what rounding explains."))
    left = len(report.findings) - _MOST_CARDS
    if left > 0:
        cards.append(tag("p", f"{left:,} more findings: paritydbg bisect … --json lists them all."))
    suspects = report.suspects[:_MOST_CARDS]
    return cards + [card(f"suspect {n}", f, report) for n, f in enumerate(suspects, 1)]


def _left_out(report: Report) -> list[Markup]:
    cover = report.coverage
    lone = [
        (f"layers only in the {side}", ", ".join(names) or "none")
        for side, names in (
            ("reference", report.alignment.lone_reference),
            ("port", report.alignment.lone_port),
        )
    ]
    rows = [(reason, f"{count:,} events") for reason, count in cover.untested] + lone
    if cover.masked:
        rows.append(("behind a dropout that drew other masks", f"{cover.masked:,} pairs"))
    table = tag("table", *(tag("tr", tag("th", w, scope="row"), tag("td", n)) for w, n in rows))
    notes = tag("ul", *(tag("li", note) for note in report.notes))
    return [tag("div", table, class_="scroll"), notes]


def _run(side: str, run: RunRecord) -> Markup:
    made = run.environment
    rows: list[tuple[str, object]] = [
        ("framework", f"{made.framework} {made.version}"),
        ("device", made.device),
        ("python", made.python or "not recorded"),
        *((name, value) for name, value in made.settings),
    ]
    if run.command:
        rows.append(("command", run.command))
    rows += [(one.api, _told(one.groups)) for one in run.optimizers]
    rows += [(one.what, one.source) for one in run.taken]
    body = (tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows)
    return tag("div", tag("table", tag("caption", side), *body), class_="scroll")


def _told(groups: tuple[tuple[tuple[str, object], ...], ...]) -> str:
    return "; ".join(", ".join(f"{name}={value}" for name, value in group) for group in groups)


@cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """How a policy names the one style or script that it lets in."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
