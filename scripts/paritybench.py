"""Runs fault cases through the product and prints what it named, right or wrong.

    python scripts/paritybench.py tests/cases sample_nets --json out.json
    python scripts/paritybench.py tests/cases sample_nets --forced
    python scripts/paritybench.py sample_nets --seeds 3 --precision fp32 --precision fp16

Each case runs twice, faulty and clean: one process records both sides with the product's capture,
another answers (``paritydbg bisect --json``) from the dumps alone, and this one judges. Lower precisions
run clean: whatever is named there is a false alarm, or a known fault of a kernel.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parent))

from casebench.apart import last_line, record_apart, run_apart
from casebench.cases import Case, seeded
from casebench.judge import Answer, answer_of, cause_right, location_right, stage_right
from casebench.lower import print_lower, run_lower
from casebench.options import case_options, chosen_cases
from casebench.precision import PRECISIONS


@dataclass(frozen=True)
class Outcome:
    """One case, judged.

    Attributes:
        case: its name.
        expected: the expected answer, as the case gives it.
        faulty: the answer to the faulty port.
        clean: the answer to the clean twin.
        first_with_twin: whether this case is the one that counts its twin's run.
    """

    case: str
    expected: Mapping[str, Any]
    faulty: Answer
    clean: Answer
    first_with_twin: bool

    @property
    def innocent(self) -> bool:
        """Whether the port is right although it looks wrong: then silence is the answer."""
        return not self.expected.get("first")

    @property
    def location(self) -> bool:
        """Whether the place is right."""
        if self.innocent:
            return self.faulty.exit_code == 0
        return location_right(self.faulty.place, self.expected["first"])

    @property
    def stage(self) -> bool:
        """Whether the stage is right."""
        if self.innocent:
            return self.faulty.exit_code == 0
        return stage_right(self.faulty.stage, self.expected["stage"])

    @property
    def cause(self) -> bool:
        """Whether the cause is right."""
        if self.innocent:
            return self.faulty.exit_code == 0
        return cause_right(self.faulty.causes, self.expected["cause"])


def run_variant(
    case: Case, variant: str, seconds: float, forced: bool = False
) -> tuple[Answer, Mapping[str, Any]]:
    """Record and answer one variant of a case, each in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="paritybench-") as folder:
        out, expected = Path(folder, "dumps"), Path(folder, "expected.json")
        out.mkdir()
        error = record_apart(case, variant, out, expected, seconds, forced)
        if error:
            return Answer(None, error=error), {}
        words = ["bisect", "ref.h5", "port.h5", "--json", "--no-try"]
        if forced:
            words += ["--forced", "ref.forced.h5", "port.forced.h5"]
        answered = run_apart("paritydbg", words, out, seconds)
        told = json.loads(expected.read_text(encoding="utf-8"))
        if answered.returncode not in (0, 1):
            return Answer(answered.returncode, error=last_line(answered.stderr)), told
        return answer_of(answered.returncode, json.loads(answered.stdout)), told


def run_cases(
    cases: Sequence[Case], jobs: int, seconds: float, watch: Any, forced: bool = False
) -> list[Outcome]:
    """Run all cases, several at once; one clean run serves every case with the same twin."""
    twins = list(dict.fromkeys(case.twin for case in cases))
    by_twin = {case.twin: case for case in reversed(cases)}
    with ThreadPoolExecutor(jobs) as pool:
        faulty = [pool.submit(run_variant, case, "faulty", seconds, forced) for case in cases]
        clean = {t: pool.submit(run_variant, by_twin[t], "clean", seconds, forced) for t in twins}
        outcomes = []
        for case, future in zip(cases, faulty, strict=True):
            answer, expected = future.result()
            quiet, told = clean[case.twin].result()
            first = by_twin[case.twin] is case
            outcomes.append(Outcome(case.name, expected or told, answer, quiet, first))
            watch()
    return outcomes


def totals(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The counts over all cases; ``compared_share`` is the mean over all answered runs."""
    twins = [o.clean for o in outcomes if o.first_with_twin]
    answered = [a for a in [o.faulty for o in outcomes] + twins if not a.crashed]
    return {
        "cases": len(outcomes),
        "location_right": sum(o.location for o in outcomes),
        "stage_right": sum(o.stage for o in outcomes),
        "cause_right": sum(o.cause for o in outcomes),
        "clean_runs": len(twins),
        "false_alarms": sum(a.exit_code != 0 for a in twins),
        "crashes": sum(a.crashed for a in [o.faulty for o in outcomes] + twins),
        "compared_share": sum(a.compared for a in answered) / len(answered) if answered else 0.0,
    }


def entry(outcome: Outcome) -> dict[str, Any]:
    """One case as JSON values."""
    faulty, clean = outcome.faulty, outcome.clean
    return {
        "case": outcome.case,
        "expected_first": outcome.expected.get("first", []),
        "expected_stage": outcome.expected.get("stage", ""),
        "expected_cause": outcome.expected.get("cause", ""),
        "named": faulty.place,
        "stage": faulty.stage,
        "cause": "+".join(faulty.causes),
        "location_right": outcome.location,
        "stage_right": outcome.stage,
        "cause_right": outcome.cause,
        "clean_quiet": clean.exit_code == 0,
        "clean_named": clean.place,
        "exit_code": faulty.exit_code,
        "clean_exit_code": clean.exit_code,
        "compared_share": faulty.compared,
        "clean_compared_share": clean.compared,
        "error": faulty.error or clean.error,
    }


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Print one line per case, and the totals in the last one."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=180)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in (
        "case",
        "stage",
        "named first",
        "place",
        "stage",
        "cause",
        "clean twin",
        "compared",
    ):
        table.add_column(name, overflow="fold")
    for o in outcomes:
        named = o.faulty.error if o.faulty.crashed else (o.faulty.place or "nothing")
        quiet = "quiet" if o.clean.exit_code == 0 else f"ALARM {o.clean.place or o.clean.error}"
        mark = "right" if o.location else "WRONG"
        stage = "right" if o.stage else f"WRONG {o.faulty.stage}"
        cause = "right" if o.cause else ("+".join(o.faulty.causes[:2]) or "none")
        cells = (o.case, o.expected.get("stage", "?"), named, mark, stage, cause, quiet)
        table.add_row(*cells, f"{o.faulty.compared:.1%}", style="" if o.location else "red")
    console.print(table)
    t = totals(outcomes)
    console.print(
        f"{t['cases']} cases: location {t['location_right']}, stage {t['stage_right']}, cause "
        f"{t['cause_right']}; {t['clean_runs']} clean runs, {t['false_alarms']} false alarms; "
        f"{t['crashes']} crashes; {t['compared_share']:.1%} of events compared",
        soft_wrap=True,
    )


@click.command()
@case_options
@click.option(
    "--forced", is_flag=True, help="Judge with forced replays and measured noise as well."
)
@click.option("--seeds", default=1, show_default=True, help="Seeds of each sample pair.")
@click.option(
    "--precision",
    "precisions",
    multiple=True,
    default=("fp32",),
    show_default=True,
    type=click.Choice(PRECISIONS),
    help="fp32 runs all cases; others run the sample pairs clean; repeatable.",
)
def main(
    folders: tuple[Path, ...],
    out: Path | None,
    jobs: int,
    timeout: float,
    patterns: tuple[str, ...],
    forced: bool,
    seeds: int,
    precisions: tuple[str, ...],
) -> None:
    """Run every case in the FOLDERS, faulty and clean, and judge what the product names.

    A folder holds case files (Python files that set EXPECTED) or sample pairs.
    """
    from rich.console import Console
    from rich.progress import Progress

    every = seeded(chosen_cases(folders, patterns), seeds)
    cases = every if "fp32" in precisions else ()
    lower = [p for p in dict.fromkeys(precisions) if p != "fp32"]
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("cases", total=len(cases))
        outcomes = run_cases(cases, jobs, timeout, lambda: bar.advance(task), forced)
        clean = run_lower(
            every, lower, lambda case: run_variant(case, "clean", timeout, forced)[0], jobs
        )
    if outcomes:
        print_table(outcomes)
    if clean:
        print_lower(clean)
    if out is not None:
        results = {
            "totals": totals(outcomes),
            "cases": [entry(o) for o in outcomes],
            "lower_precision": [asdict(one) for one in clean],
        }
        out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
