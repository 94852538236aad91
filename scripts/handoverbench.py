"""Tries what findings offer: replacements on the captured tensors, and reproductions run alone.

    python scripts/handoverbench.py tests/cases sample_nets

For the first finding of every faulty case: is a replacement offered, does one of them work; can the
finding be made into two scripts, and does each show the difference when it is run by itself.
"""

from __future__ import annotations

import json
import subprocess
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
from casebench.cases import Case
from casebench.options import case_options, chosen_cases


@dataclass(frozen=True)
class Handed:
    """What became of one case's first finding.

    Attributes:
        case: its name.
        place: what was named.
        replacement: ``works``, ``does not``, ``not tried: …``, or ``none offered``.
        code: the line that was offered first.
        repro: ``shows it`` where both scripts do, else what happened instead.
    """

    case: str
    place: str
    replacement: str
    code: str
    repro: str


def handed(case: Case, seconds: float) -> Handed:
    """Record a faulty case, bisect it with trials, and make and run its reproduction."""
    with tempfile.TemporaryDirectory(prefix="handoverbench-") as name:
        folder = Path(name, "dumps")
        folder.mkdir()
        error = record_apart(case, "faulty", folder, Path(name, "expected.json"), seconds)
        if error:
            return Handed(case.name, "", error, "", "")
        told = run_apart("paritydbg", ["bisect", "ref.h5", "port.h5", "--json"], folder, seconds)
        if told.returncode != 1:
            return Handed(case.name, "nothing", "none offered", "", "no finding")
        finding = json.loads(told.stdout)["findings"][0]
        replacement, code = _replacement(finding["candidates"])
        words = ["repro", "1", "ref.h5", "port.h5", "-o", "case"]
        made = run_apart("paritydbg", words, folder, seconds)
        repro = last_line(made.stderr)
        if made.returncode == 0:
            shown = [_shows(folder / "case", f"repro_{p}.py", seconds) for p in _PACKAGES]
            repro = "shows it" if all(shown) else "DOES NOT SHOW IT"
        return Handed(case.name, finding["place"], replacement, code, repro)


_PACKAGES = ("torch", "mindspore")


def _replacement(candidates: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    if not candidates:
        return "none offered", ""
    first = candidates[0]
    trial = first["trial"]
    if trial is None:
        return "no line to try", first["api"]
    words = {True: "works", False: "does not", None: trial["words"]}[trial["works"]]
    return words, first["code"]


def _shows(folder: Path, script: str, seconds: float) -> bool:
    """Whether a script, run by itself, ends with 1 after saying what differs."""
    done = subprocess.run(
        # Isolated: neither the working folder's modules nor this project's can be of help.
        [sys.executable, "-I", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return done.returncode == 1 and "DIFFERS" in done.stdout


@click.command()
@case_options
def main(
    folders: tuple[Path, ...],
    out: Path | None,
    jobs: int,
    timeout: float,
    patterns: tuple[str, ...],
) -> None:
    """Try what the first finding of every case in the FOLDERS offers."""
    from rich.console import Console
    from rich.progress import Progress

    cases = chosen_cases(folders, patterns)
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("cases", total=len(cases))

        def one(case: Case) -> Handed:
            done = handed(case, timeout)
            bar.advance(task)
            return done

        with ThreadPoolExecutor(jobs) as pool:
            results = list(pool.map(one, cases))
    for result in results:
        click.echo(
            f"{result.case:<36} {result.place:<28} {result.replacement:<20} "
            f"{result.code:<60} {result.repro}"
        )
    offered = [r for r in results if r.replacement in ("works", "does not")]
    made = [r for r in results if r.repro in ("shows it", "DOES NOT SHOW IT")]
    click.echo(
        f"{len(results)} cases: replacements tried in {len(offered)}, one works in "
        f"{sum(r.replacement == 'works' for r in offered)}; reproductions of {len(made)}, both scripts "
        f"show it in {sum(r.repro == 'shows it' for r in made)}"
    )
    if out is not None:
        out.write_text(json.dumps([asdict(r) for r in results], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
