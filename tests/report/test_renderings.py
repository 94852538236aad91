"""Terminal, Markdown and JSON say the same, finding first."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from paritydbg.errors import UsageError
from paritydbg.report.lines import headline, next_command
from paritydbg.report.markdown import to_markdown
from paritydbg.report.structured import SCHEMA, to_json
from paritydbg.report.table import Choice, rows
from paritydbg.report.terminal import print_report, print_table
from tests.report.example import clean, example

TERMINAL = """\
✗ First divergence: norm (forward, step 1)
  ref.h5: torch 2.13.0 on cpu
  port.h5: mindspore 2.10.0 on CPU, incomplete (killed)

1. norm  (forward, step 1, DIVERGED)
   what      norm is the first layer whose output differs though its input agrees
   layers    torch.nn.LayerNorm norm ↔ mindspore.nn.LayerNorm norm
   input     agrees
   how far   output: relative L2 3.00e-03, allowed 1.00e-06 \
(modelled: float32 rounding over 16 terms); 3,000 times over
   worst at  [1, 2]: reference 1, port 1.003; 50.0% of 6 elements outside
   attribute eps 1e-05, the port's epsilon 1e-07; write epsilon=1e-05
   cause     layernorm-eps-default (90% sure): epsilon was left at its default
   instead   nn.LayerNorm((16,), epsilon=1e-05)
             mindspore.nn.LayerNorm · runs on CPU · differs: epsilon defaults to 1e-7
   follows   1 event differ because of it

Compared 6 of 8 captured events (75.0%); 1 layer paired. Not compared: 2 only the reference has it.
Note: noise was modelled
Next: paritydbg diff ref.h5 port.h5 --layer 'norm*'
"""


def printed(width: int = 200) -> str:
    stream = io.StringIO()
    print_report(example(), Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


def test_the_terminal_report_is_this() -> None:
    assert "\n".join(line.rstrip() for line in printed().splitlines()) + "\n" == TERMINAL


def test_nothing_is_coloured_where_no_terminal_looks() -> None:
    assert "\x1b" not in printed()


def test_markdown_holds_every_sentence_of_the_terminal() -> None:
    text = to_markdown(example())
    for sentence in ("First divergence: norm", "3,000 times over", "write epsilon=1e-05"):
        assert sentence in text
    assert "`nn.LayerNorm((16,), epsilon=1e-05)`" in text


def test_json_is_strict_and_carries_its_schema() -> None:
    report = example()
    hopeless = replace(report.findings[0].evidence, score=math.inf)  # type: ignore[type-var]
    report = replace(report, findings=(replace(report.findings[0], evidence=hopeless),))
    values = json.loads(
        to_json(report, every_pair=True), parse_constant=lambda name: pytest.fail(name)
    )
    assert values["schema"] == SCHEMA
    assert values["exit_code"] == 1
    assert values["findings"][0]["place"] == "norm"
    assert values["findings"][0]["stage"] == "forward"
    assert values["findings"][0]["evidence"]["score"] == "inf"
    assert len(values["comparisons"]) == 3


def test_parity_says_so_and_exits_with_0() -> None:
    whole = replace(clean(), port=replace(clean().port, complete=True))
    assert headline(whole) == "Parity: no difference beyond rounding"
    # The example's port was killed.
    assert headline(clean()) == "No difference beyond rounding up to where a run was cut short"
    assert clean().exit_code == 0
    assert next_command(clean()) == "paritydbg diff ref.h5 port.h5 --sort worst"


def test_worst_first_sorts_by_score() -> None:
    table = rows(example().comparisons, Choice(), "worst")
    assert [row.place for row in table] == ["norm", "head", "emb"]


def test_filters_choose_rows() -> None:
    table = rows(example().comparisons, Choice(layers=("h*",), verdicts=("INHERITED",)), "order")
    assert [row.place for row in table] == ["head"]


def test_a_filter_that_leaves_nothing_is_an_error_that_names_it() -> None:
    with pytest.raises(UsageError, match=r"fits the filters \(nothing\*\); 3 were compared"):
        rows(example().comparisons, Choice(layers=("nothing*",)), "order")


def test_a_long_table_says_what_it_leaves_off() -> None:
    stream = io.StringIO()
    table = rows(example().comparisons, Choice(), "order")
    print_table(table, Console(file=stream, width=160), most=1)
    assert "… 2 more; --all shows every pair" in stream.getvalue()
