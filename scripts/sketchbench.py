"""How often a sketch's verdict differs from the full values': both on the very same recorded numbers.

    python scripts/sketchbench.py sample_nets --json out.json
    python scripts/sketchbench.py sample_nets -k unet --faults 20

Every sample pair is recorded in full, clean and with some of its faults. Both dumps are judged, then
judged again with each tensor replaced by its sketch wherever ``paritydbg run --sketch`` stores one.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))

from casebench.apart import record_apart
from casebench.cases import Case
from casebench.options import case_options, chosen_cases

from paritydbg import open_dump
from paritydbg.align.user_map import UserMap
from paritydbg.dump.reader import Dump
from paritydbg.dump.sketches import SKETCH_BYTES, Choice
from paritydbg.errors import SketchOnlyError
from paritydbg.measure.sketch import RELATIVE_ERROR, Sketch
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Event, Values
from paritydbg.model.record import RunRecord
from paritydbg.model.report import Report
from paritydbg.pipeline import judge
from paritydbg.verdict.judge import MATTERS
from paritydbg.verdict.sketched import CANNOT_TELL


class Sketched:
    """A recorded run as it would be with sketches; they are worked out when they are asked for."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump
        self._full: dict[Event, Event] = {}
        self._known: dict[str, Sketch] = {}
        choice = Choice()
        for event in dump.events:
            values = Values(dump.load_raw(event), event.dtype)
            made = event
            if choice.sketches(event.key, values):
                made = replace(event, payload="sketch", nbytes=SKETCH_BYTES)
            self._full[made] = event

    @property
    def path(self) -> str:
        return self._dump.path

    @property
    def run(self) -> RunRecord:
        return self._dump.run

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._full)

    def load(self, event: Event) -> NDArray[Any]:
        if not event.has_values:
            raise SketchOnlyError(f"{event.key} is a sketch")
        return self._dump.load(event)

    def load_sketch(self, event: Event) -> Sketch:
        if event.digest not in self._known:
            self._known[event.digest] = self._dump.load_sketch(self._full[event])
        return self._known[event.digest]


@dataclass(frozen=True)
class Result:
    """One recorded pair, judged twice.

    Attributes:
        case: sample pair and fault, ``clean`` without one.
        verdicts: pairs of events with a verdict.
        sketched: of these, pairs with a sketch on either side.
        differ: verdicts that are not the same.
        untested: of these, pairs that the sketch cannot compare, and says so.
        within: of these, pairs within three standard errors of a bound, or whose sketch says so.
        outside: the rest of these, as ``event: full verdict, sketched verdict (reason)``.
        full_bytes, sketch_bytes: payload of both sides' dumps, what is equal counted once.
        findings, sketch_findings: places, the first divergence first.
        error: why there is no result, ``""`` with one.
    """

    case: str
    verdicts: int = 0
    sketched: int = 0
    differ: int = 0
    untested: int = 0
    within: int = 0
    outside: tuple[str, ...] = ()
    full_bytes: int = 0
    sketch_bytes: int = 0
    findings: tuple[str, ...] = ()
    sketch_findings: tuple[str, ...] = ()
    error: str = ""

    @property
    def same_findings(self) -> bool:
        """Whether both name the same places in the same order."""
        return self.findings == self.sketch_findings

    @property
    def same_first(self) -> bool:
        """Whether both name the same place first."""
        return self.findings[:1] == self.sketch_findings[:1]


def bench(case: Case, variant: str, seconds: float) -> Result:
    """Record one pair and judge it twice."""
    name = case.name if variant == "faulty" else f"{case.file.name}/clean"
    with tempfile.TemporaryDirectory(prefix="sketchbench-") as folder:
        error = record_apart(case, variant, Path(folder), Path(folder, "expected.json"), seconds)
        if error:
            return Result(name, error=error)
        with (
            open_dump(Path(folder, "ref.h5")) as reference,
            open_dump(Path(folder, "port.h5")) as port,
        ):
            full = judge(reference, port, UserMap())
            sides = Sketched(reference), Sketched(port)
            short = judge(*sides, UserMap())
            sizes = (
                _payload(reference.events) + _payload(port.events),
                _payload(sides[0].events) + _payload(sides[1].events),
            )
    return _result(name, full, short, sizes)


def _result(name: str, full: Report, short: Report, sizes: tuple[int, int]) -> Result:
    mine = {c.pair.first.key: c for c in full.comparisons}
    sketched = differ = untested = within = 0
    outside = []
    for other in short.comparisons:
        one = mine[other.pair.first.key]
        sketched += any(not e.has_values for e in (*other.pair.reference, *other.pair.port))
        if one.verdict is other.verdict:
            continue
        differ += 1
        if other.verdict is Verdict.UNTESTED:
            untested += 1
        elif _within(one, other):
            within += 1
        else:
            told = "; ".join(filter(None, (one.reason, other.reason)))
            pair = f"{one.verdict.value}, {other.verdict.value}"
            outside.append(f"{other.pair.first.key}: {pair} ({told or _numbers(one, other)})")
    return Result(
        name,
        len(short.comparisons),
        sketched,
        differ,
        untested,
        within,
        tuple(outside),
        *sizes,
        tuple(finding.place for finding in full.findings),
        tuple(finding.place for finding in short.findings),
    )


def _within(full: Comparison, short: Comparison) -> bool:
    """Whether the sketch says itself that it cannot tell, or its error bars reach a bound."""
    if short.reason.startswith(CANNOT_TELL):
        return True
    if full.metrics is None or short.metrics is None:
        return False
    found = full.metrics.difference_l2
    bounds = [MATTERS * full.metrics.reference_l2]
    bounds += [c.allowance.l2 for c in (full, short) if c.allowance is not None]
    return any(
        abs(found - bound) <= 3.0 * RELATIVE_ERROR * math.hypot(found, bound) for bound in bounds
    )


def _numbers(full: Comparison, short: Comparison) -> str:
    texts = []
    for one in (full, short):
        allowed = one.allowance.l2 if one.allowance is not None else math.nan
        found = one.metrics.difference_l2 if one.metrics is not None else math.nan
        texts.append(f"{found:.2e} of {allowed:.2e} allowed")
    return " against ".join(texts)


def _payload(events: Iterable[Event]) -> int:
    return sum({(e.digest, e.payload): e.nbytes for e in events}.values())


def chosen(cases: Sequence[Case], faults: int) -> list[tuple[Case, str]]:
    """Every pair clean, and with its faults, evenly chosen where it has more than are wanted."""
    found: list[tuple[Case, str]] = []
    for twin in dict.fromkeys(case.twin for case in cases):
        here = [case for case in cases if case.twin == twin]
        found.append((here[0], "clean"))
        step = max(1, math.ceil(len(here) / faults)) if faults else len(here) + 1
        found += [(case, "faulty") for case in here[step // 2 :: step]]
    return found


def totals(results: Sequence[Result]) -> dict[str, float]:
    """The counts over all results."""
    good = [r for r in results if not r.error]
    full, short = (sum(getattr(r, f"{n}_bytes") for r in good) for n in ("full", "sketch"))
    return {
        "runs": len(good),
        "failed": len(results) - len(good),
        **{
            name: sum(getattr(r, name) for r in good)
            for name in ("verdicts", "sketched", "differ", "untested", "within")
        },
        "outside": sum(len(r.outside) for r in good),
        "full_bytes": full,
        "sketch_bytes": short,
        "same_findings": sum(r.same_findings for r in good),
        "same_first": sum(r.same_first for r in good),
    }


def print_table(results: Sequence[Result]) -> None:
    """Print one line per run, what lies outside the error bars, and the totals in the last line."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("run", "verdicts", "sketched", "differ", "untested", "in bar", "outside"):
        table.add_column(name)
    for name in ("full MB", "sketch MB", "findings"):
        table.add_column(name, overflow="fold")
    for r in results:
        if r.error:
            table.add_row(r.case, *[""] * 8, r.error)
            continue
        counts = (r.verdicts, r.sketched, r.differ, r.untested, r.within, len(r.outside))
        same = "same" if r.same_findings else "same first" if r.same_first else "OTHER FIRST"
        if not r.same_findings:
            same += f": {', '.join(r.findings[:3])} / {', '.join(r.sketch_findings[:3])}"
        sizes = f"{r.full_bytes / 1e6:.1f}", f"{r.sketch_bytes / 1e6:.2f}"
        table.add_row(r.case, *map(str, counts), *sizes, same)
    console.print(table)
    for r in results:
        for line in r.outside[:12]:
            console.print(f"  {r.case}: {line}", markup=False, soft_wrap=True)
    kinds = Counter(line.split(": ")[1].split(" (")[0] for r in results for line in r.outside)
    for kind, count in kinds.most_common():
        console.print(f"  outside the error bar {count} times: {kind}", markup=False)
    t = totals(results)
    console.print(
        f"{t['runs']} runs: {t['verdicts']:,} verdicts, {t['sketched']:,} on sketches; {t['differ']} "
        f"differ: {t['untested']} untested, {t['within']} within the error bar, {t['outside']} outside; "
        f"{t['full_bytes'] / 1e6:.1f} MB became {t['sketch_bytes'] / 1e6:.1f}; findings the same in "
        f"{t['same_findings']}, the first in {t['same_first']}; {t['failed']} failed",
        soft_wrap=True,
    )


@click.command()
@case_options
@click.option("--faults", default=3, show_default=True, help="Faults of each sample pair.")
def main(
    folders: tuple[Path, ...],
    out: Path | None,
    jobs: int,
    timeout: float,
    faults: int,
    patterns: tuple[str, ...],
) -> None:
    """Judge recorded pairs in the FOLDERS by their values and by their sketches."""
    cases = chosen_cases(folders, patterns)
    with ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(bench, *one, timeout) for one in chosen(cases, faults)]
        results = [run.result() for run in runs]
    print_table(results)
    if out is not None:
        done = {"totals": totals(results), "runs": [asdict(result) for result in results]}
        out.write_text(json.dumps(done, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
