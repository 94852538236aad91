"""Holds the product against fixed thresholds, on the very same recorded runs.

    python scripts/detectorbench.py tests/cases sample_nets

Every case is recorded faulty and clean. Each detector names the first place that it finds different: right
or wrong on the faulty run, an alarm on a clean one. See `casebench.detectors` for the rules.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent))

from casebench.apart import last_line, record_apart, run_apart
from casebench.cases import Case
from casebench.detectors import RULES, first_places
from casebench.judge import Answer, answer_of, location_right
from casebench.options import case_options, chosen_cases

PRODUCT = "paritydbg"


@dataclass(frozen=True)
class Named:
    """One recorded run.

    Attributes:
        case: its name; ``variant`` faulty or clean.
        first: places that are right, empty where there is nothing to find.
        places: detector -> what it names first, ``""`` for nothing.
        error: why it could not be recorded, ``""`` where it was.
    """

    case: str
    variant: str
    first: tuple[str, ...] = ()
    places: Mapping[str, str] | None = None
    error: str = ""

    def right(self, detector: str) -> bool:
        """Whether a detector's answer to a faulty run is right."""
        place = (self.places or {}).get(detector)
        if place is None:
            return False
        return location_right(place, self.first) if self.first else not place

    def alarms(self, detector: str) -> bool:
        """Whether a detector names anything."""
        return self.places is None or bool(self.places.get(detector, "no answer"))


def run(case: Case, variant: str, seconds: float) -> Named:
    """Record one variant of a case and ask every detector."""
    with tempfile.TemporaryDirectory(prefix="detectorbench-") as place:
        out, expected = Path(place, "dumps"), Path(place, "expected.json")
        out.mkdir()
        error = record_apart(case, variant, out, expected, seconds)
        if error:
            return Named(case.name, variant, error=error)
        places = first_places(out)
        answer = _product(out, seconds)
        if not answer.crashed:
            places[PRODUCT] = answer.place if answer.exit_code else ""
        told = json.loads(expected.read_text(encoding="utf-8"))
        return Named(case.name, variant, tuple(told["first"]), places, answer.error)


_QUESTION = ("bisect", "ref.h5", "port.h5", "--json", "--no-try")


def _product(out: Path, seconds: float) -> Answer:
    done = run_apart("paritydbg", _QUESTION, out, seconds)
    if done.returncode not in (0, 1):
        return Answer(done.returncode, error=last_line(done.stderr))
    return answer_of(done.returncode, json.loads(done.stdout))


def run_all(
    cases: Sequence[Case], jobs: int, seconds: float, watch: Callable[[], object]
) -> list[Named]:
    """Every case faulty, and each twin once clean."""
    twins = {case.twin: case for case in reversed(cases)}
    wanted = [(case, "faulty") for case in cases] + [(case, "clean") for case in twins.values()]

    def one(told: tuple[Case, str]) -> Named:
        named = run(*told, seconds)
        watch()
        return named

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, wanted))


def table(runs: Sequence[Named]) -> str:
    """The detectors' counts as a Markdown table."""
    faulty = [one for one in runs if one.variant == "faulty"]
    clean = [one for one in runs if one.variant == "clean"]
    lines = [
        f"| detector | place named first is right, of {len(faulty)} | clean runs with an alarm, "
        f"of {len(clean)} |",
        "| --- | --- | --- |",
    ]
    for detector in (*RULES, PRODUCT):
        right = sum(one.right(detector) for one in faulty)
        alarms = sum(one.alarms(detector) for one in clean)
        lines.append(f"| {detector} | {right} | {alarms} |")
    return "\n".join(lines)


@click.command()
@case_options
def main(
    folders: tuple[Path, ...],
    out: Path | None,
    jobs: int,
    timeout: float,
    patterns: tuple[str, ...],
) -> None:
    """Let every detector judge every case in the FOLDERS."""
    from rich.console import Console
    from rich.progress import Progress

    cases = chosen_cases(folders, patterns)
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        total = len(cases) + len({case.twin for case in cases})
        task = bar.add_task("runs", total=total)
        runs = run_all(cases, jobs, timeout, lambda: bar.advance(task))
    for one in runs:
        if one.error:
            click.echo(f"{one.case} {one.variant}: {one.error}", err=True)
    click.echo(table(runs))
    if out is not None:
        out.write_text(json.dumps([asdict(one) for one in runs], indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
