"""Measures what a whole bisection in rounds costs, in plain training steps.

    python scripts/roundsbench.py resnet50

Start-up and imports are measured on runs of no step and taken out of every run, plain or captured; what
is left of all runs and of the comparison is told as a multiple of one plain step of each script. A
framework's first step is dearer than its next ones (kernels are looked up and tuned); each captured run
has such a first step, so the plain one counts with it, and the next one is told beside it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent))

from casebench.cases import ROOT

import paritydbg
from paritydbg import replays, rounds
from paritydbg.errors import NothingCapturedError
from paritydbg.session.launcher import Launched, run_script
from paritydbg.session.order import LaunchOrder

SIDES = ("torch", "mindspore")


@dataclass(frozen=True)
class Cost:
    """Seconds of one bisection, start-up and imports taken out.

    Attributes:
        plain: one plain first step of the reference and one of the port.
        next_step: one plain second step of each.
        reference, port: all captured runs of each side.
        comparing: aligning, comparing and explaining.
        runs: how many captured runs there were.
    """

    plain: float
    next_step: float
    reference: float
    port: float
    comparing: float
    runs: int

    @property
    def total(self) -> float:
        """All that the bisection cost."""
        return self.reference + self.port + self.comparing


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The median time that a piece of work takes."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def script(side: str, pair: str, steps: int) -> tuple[str, ...]:
    """The command line of a sample pair's training script."""
    return (sys.executable, str(ROOT / "scripts" / f"train_{side}.py"), pair, "--steps", str(steps))


def plain(command: Sequence[str]) -> None:
    """Run a script as it is."""
    subprocess.run(list(command), check=True, capture_output=True)


def start_up(command: Sequence[str], folder: Path) -> float:
    """What a captured run costs before its first step."""

    def run() -> None:
        try:
            run_script(command, LaunchOrder(out=str(folder / "none.h5")), aside=True)
        except NothingCapturedError:
            return

    return seconds(run, 3)


def measure(pair: str, folder: Path) -> Cost:
    """The cost of bisecting a sample pair in rounds."""
    by_steps = {
        side: [seconds(lambda s=side, n=n: plain(script(s, pair, n)), 3) for n in range(3)]  # type: ignore[misc]
        for side in SIDES
    }
    before = {side: start_up(script(side, pair, 0), folder) for side in SIDES}
    spent: dict[str, list[float]] = {side: [] for side in SIDES}

    def timed(command: Sequence[str], order: LaunchOrder, *, aside: bool = False) -> Launched:
        begin = time.perf_counter()
        done = run_script(command, order, aside=aside)
        side = next(side for side in SIDES if f"train_{side}" in command[1])
        spent[side].append(time.perf_counter() - begin - before[side])
        return done

    rounds.run_script = replays.run_script = timed
    commands = [script(side, pair, 1) for side in SIDES]
    # Not ended early: leaving an interpreter is part of start-up, which is taken out.
    order = LaunchOrder(out="", steps="1")
    made = rounds.run_rounds(commands[0], commands[1], str(folder / "kept"), order)
    comparing = seconds(
        lambda: paritydbg.diff(
            made.reference, made.port, forced=(made.reference_forced, made.port_forced)
        )
    )
    return Cost(
        plain=sum(times[1] - times[0] for times in by_steps.values()),
        next_step=sum(times[2] - times[1] for times in by_steps.values()),
        reference=sum(spent["torch"]),
        port=sum(spent["mindspore"]),
        comparing=comparing,
        runs=sum(len(times) for times in spent.values()),
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("pair")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write the figures here.")
def main(pair: str, out: Path | None) -> None:
    """Print the cost of bisecting the sample PAIR in rounds."""
    if not (ROOT / "sample_nets" / pair / "torch_net.py").is_file():
        raise click.UsageError(f"sample_nets holds no pair {pair!r}")
    with tempfile.TemporaryDirectory(prefix="roundsbench-") as place:
        cost = measure(pair, Path(place))
    click.echo(
        f"{pair}: {cost.runs} captured runs {cost.reference + cost.port:.2f} s, comparing "
        f"{cost.comparing:.2f} s; plain first steps {cost.plain:.2f} s, next {cost.next_step:.2f} s"
    )
    click.echo(f"{pair}: {cost.total / cost.plain:.1f} times one plain step of each script")
    if out is not None:
        out.write_text(json.dumps(asdict(cost), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
