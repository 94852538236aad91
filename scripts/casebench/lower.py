"""Clean sample pairs in lower precisions: quiet, a known fault of a kernel, or a false alarm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from casebench.cases import Case, load_file
from casebench.judge import Answer, location_right


@dataclass(frozen=True)
class CleanRun:
    """One pair in one precision.

    Attributes:
        run: pair, precision and seed.
        known: places where a kernel is known to be wrong in this precision.
        answer: what was said.
    """

    run: str
    known: tuple[str, ...]
    answer: Answer

    @property
    def outcome(self) -> str:
        """``quiet``, ``known``, ``ALARM`` or ``cannot run``."""
        if self.answer.crashed:
            return "cannot run"
        if self.answer.exit_code == 0:
            return "MISSED" if self.known else "quiet"
        return "known" if location_right(self.answer.place, self.known) else "ALARM"


def run_lower(
    cases: Sequence[Case],
    precisions: Sequence[str],
    answer: Callable[[Case], Answer],
    jobs: int,
) -> list[CleanRun]:
    """Every sample pair of the cases, once per twin and precision.

    ``KNOWN`` in a pair's faults maps a precision to the places where a kernel of the device is wrong.
    """
    twins = {case.twin: case for case in reversed(cases) if case.is_sample}
    wanted = [replace(case, precision=p) for p in precisions for case in reversed(twins.values())]
    with ThreadPoolExecutor(jobs) as pool:
        answers = list(pool.map(answer, wanted))
    return [
        CleanRun(
            f"{case.file.name} {case.precision}" + (f" @{case.seed}" if case.seed else ""),
            tuple(getattr(load_file(case.file / "faults.py"), "KNOWN", {}).get(case.precision, ())),
            told,
        )
        for case, told in zip(wanted, answers, strict=True)
    ]


def print_lower(runs: Sequence[CleanRun]) -> None:
    """Print one line per run, and the counts in the last one."""
    for one in runs:
        told = one.answer.error or one.answer.place
        print(f"{one.run:20} {one.outcome:12} {one.answer.compared:6.1%}  {told}".rstrip())
    counts = {
        name: sum(one.outcome == name for one in runs) for name in ("quiet", "known", "cannot run")
    }
    alarms = len(runs) - sum(counts.values())
    print(
        f"{len(runs)} clean runs in lower precision: {counts['quiet']} quiet, {counts['known']} name a "
        f"known fault of a kernel, {alarms} wrong, {counts['cannot run']} cannot run"
    )
