"""The page: says what the terminal says, needs nothing else, and shows hostile names as text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from torch import nn

import paritydbg
from paritydbg.cli.main import exit_code
from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Phase
from paritydbg.model.record import LayerRecord
from paritydbg.model.report import Report
from paritydbg.report.html.depth_plot import Point, points_of, thinned
from paritydbg.report.html.page import to_html
from paritydbg.report.html.tree import tree_of
from paritydbg.report.lines import coverage_text, finding_lines, headline
from tests.report.example import clean, comparison, example

HOSTILE = "</script><script>alert(1)</script>\"'&\u202e\x00\ud800"


class Page(HTMLParser):
    """What a browser would take from a page: its text, its elements, what it would load."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.inside: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.inside[self.open[-1]] = data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def hostile() -> Report:
    report = example()
    deciding = comparison(HOSTILE, 1, 3000.0, Verdict.DIVERGED)
    finding = replace(report.findings[0], place=HOSTILE, summary=HOSTILE, evidence=deciding)
    layer = LayerRecord(HOSTILE, HOSTILE, HOSTILE, True, True)
    run = replace(report.reference, layers=(layer,), command=HOSTILE)
    return replace(
        report,
        reference=run,
        reference_path=HOSTILE,
        findings=(finding,),
        comparisons=(deciding,),
        notes=(HOSTILE,),
    )


def test_the_page_says_what_every_report_says() -> None:
    report = example()
    text = Page(to_html(report)).text
    assert headline(report) in text
    assert coverage_text(report) in text
    for line in finding_lines(report.findings[0], report):
        assert line.text in text
    assert all(note in text for note in report.notes)


def test_a_page_without_a_finding_says_so() -> None:
    text = Page(to_html(clean())).text
    assert "No difference beyond rounding up to where a run was cut short" in text
    assert "None: nothing parts" in text


@pytest.mark.parametrize("made", [example, clean, hostile])
def test_the_page_loads_nothing_and_runs_only_its_own_script(made: object) -> None:
    assert callable(made)
    page = Page(to_html(made()))
    assert page.open == []
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert not {"link", "img", "iframe", "object", "form"} & set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "style")
        assert name != "href" or value.startswith("#")
    (policy,) = [value for name, value in page.attributes if value.startswith("default-src")]
    assert policy.startswith("default-src 'none'")
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.inside[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
        assert not re.search(r"https?:|@import|url\(|fetch|eval", page.inside[kind])


def test_hostile_names_are_shown_as_text() -> None:
    html = to_html(hostile())
    assert html.encode("utf-8")
    page = Page(html)
    assert "alert(1)" in page.text
    assert "alert(1)" not in page.inside["script"]
    assert "\u202e" not in html
    assert "\\u202e" in page.text


def test_colour_is_never_alone() -> None:
    page = Page(to_html(example()))
    labels = {value for name, value in page.attributes if name == "aria-label"}
    assert {"DIVERGED", "INHERITED", "MATCH"} <= labels
    assert {"✗", "↓", "✓"} <= {word.strip() for word in page.words}


def test_layers_stand_in_the_order_in_which_they_ran() -> None:
    names = ["head", "stem", "stem.b", "stem.a"]
    layers = tuple(LayerRecord(n, "Linear", "torch.nn.Linear", True, True) for n in names)
    report = example()
    report = replace(
        report,
        reference=replace(report.reference, layers=layers),
        comparisons=(
            comparison("stem.b", 0, 0.1, Verdict.MATCH),
            comparison("stem.a", 1, 9.0, Verdict.DIVERGED),
            comparison("head", 2, 9.0, Verdict.INHERITED),
        ),
    )
    root = tree_of(report)
    assert list(root.children) == ["stem", "head"]
    assert list(root.children["stem"].children) == ["b", "a"]
    assert root.children["stem"].heaviest is Verdict.DIVERGED
    assert root.children["head"].heaviest is Verdict.INHERITED


def test_thinning_keeps_every_origin_and_the_order() -> None:
    points = [Point(f"l{n}", 1e-6, 1e-4, Verdict.MATCH) for n in range(2000)]
    points[1234] = Point("wrong", 1e-2, 1e-4, Verdict.DIVERGED)
    chosen = thinned(points, 100)
    assert len(chosen) == 100
    assert [at for at, _ in chosen] == sorted(at for at, _ in chosen)
    assert (1234, points[1234]) in chosen


def test_two_thousand_layers_stay_a_light_page() -> None:
    report = example()
    names = [f"stage{n // 100}.block{n}.conv" for n in range(2000)]
    layers = tuple(LayerRecord(n, "Conv2d", "torch.nn.Conv2d", True, True) for n in names)
    many = tuple(comparison(n, i, 0.5, Verdict.MATCH) for i, n in enumerate(names))
    report = replace(
        report, reference=replace(report.reference, layers=layers), comparisons=many, findings=()
    )
    assert len(points_of(report, Phase.FORWARD)) == 2000
    html = to_html(report)
    assert len(html) < 2_000_000
    page = Page(html)
    assert page.tags.count("circle") <= 500
    # Closed but for the net: a browser lays out only what is open.
    assert [name for name, _ in page.attributes].count("open") == 1
    assert all(name.rpartition(".")[2] in page.text for name in names[:3])


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    fragment = example()._repr_html_()
    page = Page(fragment)
    assert page.tags == ["iframe"]
    assert dict(page.attributes)["srcdoc"] == to_html(example())


def run_pair(folder: Path) -> list[str]:
    """Two dumps of one layer, whose epsilons differ."""
    paths = []
    for name, epsilon in (("ref", 1e-5), ("port", 1e-2)):
        net = nn.Sequential(nn.LayerNorm(6, eps=epsilon))
        paths.append(str(folder / f"{name}.h5"))
        with paritydbg.capture(net, paths[-1]):
            net(torch.linspace(0, 1, 24).reshape(4, 6)).sum().backward()
    return paths


def test_the_command_writes_the_page_and_refuses_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dumps = run_pair(tmp_path)
    page = tmp_path / "report.html"
    page.write_text("old")
    assert exit_code(["bisect", *dumps, "--html", str(page)]) == 1
    text = Page(page.read_text(encoding="utf-8")).text
    assert "where they part most" in text
    assert headline(paritydbg.diff(*dumps)) in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["port.h5", "ref.h5", "report.html"]
    capsys.readouterr()
    assert exit_code(["diff", *dumps, "--html", str(tmp_path / "no" / "r.html")]) == 2
    assert "make it first" in capsys.readouterr().err
