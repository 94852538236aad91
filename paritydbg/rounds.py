"""Both scripts run in rounds: free runs, forced replays and noise.

`pipeline` works on dumps that are there; here they are made, each kept and made again only where what
went into it has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from paritydbg.dump.reader import open_dump
from paritydbg.errors import UsageError
from paritydbg.pipeline import diff
from paritydbg.replays import NOISE_RUNS, forced_run, noise_runs, paired_by, replayed_path, started
from paritydbg.session.kept import Kept
from paritydbg.session.launcher import Launched, run_script
from paritydbg.session.order import LaunchOrder
from paritydbg.window import window_around

# What a stress pass multiplies inputs by: a normalisation's variance falls to a ten-thousandth, so that
# an epsilon a ten-thousandth as large shows as before.
STRESS = 0.01

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Rounds:
    """The dumps of all rounds: free runs of both sides, and replays of each on the reference's values.

    Attributes:
        stressed: replays of both sides with the inputs of leaves scaled down, None without.
        sketches: of both sides, made first where there is a budget; where nothing was recorded in full
            all others are ``""``.
    """

    reference: str
    port: str
    reference_forced: str
    port_forced: str
    stressed: tuple[str, str] | None = None
    sketches: tuple[str, str] | None = None


def run_rounds(
    reference: Sequence[str],
    port: Sequence[str],
    folder: str,
    order: LaunchOrder,
    *,
    runs: int = NOISE_RUNS,
    map_file: str | None = None,
    budget: int = 0,
    stress: bool = True,
    tell: Tell = lambda _: None,
) -> Rounds:
    """Run both scripts in all rounds: what `diff` needs for the whole job.

    Args:
        reference, port: the two command lines.
        folder: where the dumps are kept; a round whose inputs did not change is not repeated.
        order: what to capture of both.
        runs: perturbed replays of the reference, 0 to model its noise.
        map_file: names pairs of layers and parameters, as for `paritydbg.diff`.
        budget: where given, both are recorded as sketches first, and in full only around what those
            find, up to so many bytes of the reference's tensors.
        stress: whether leaves are fed smaller inputs as well, which shows hidden epsilons.
        tell: is told in a line what is done.

    Raises:
        UsageError: a script failed or cannot be run; the map cannot be used.
        DumpError, NothingCapturedError, NothingComparedError: as for the single steps.
    """
    if map_file:
        # Before any script runs: a map that cannot be read would end the last round only.
        paired = paired_by(order, map_file)
    else:
        paired = order
    os.makedirs(folder, exist_ok=True)
    rounds = _Folder(folder, runs, map_file, stress, tell)
    sides = _Side(reference, order), _Side(port, paired)
    if not budget:
        return rounds.run_in_full(sides, "")
    sketches = rounds.run_sketches(sides)
    report = diff(*sketches, map_file=map_file, rename=order.rename)
    with open_dump(sketches[0]) as found:
        window = window_around(report, found.events, budget)
    if window is None:
        tell("the sketches agree, or part where no layer is: nothing is recorded in full")
        return Rounds("", "", "", "", sketches=sketches)
    tell(
        f"the sketches part at {report.findings[0].place if report.findings else 'suspects'}: "
        f"{len(window.reference)} layers are recorded in full, {window.nbytes / 1e6:,.1f} MB a step "
        "of the reference"
    )
    mine, yours = replace(order, layers=window.reference), replace(paired, layers=window.port)
    made = rounds.run_in_full((_Side(reference, mine), _Side(port, yours)), sketches[0])
    return replace(made, sketches=sketches)


@dataclass(frozen=True)
class _Side:
    """One script and what is captured of it."""

    command: Sequence[str]
    order: LaunchOrder


class _Folder:
    """The folder of all rounds, in which a dump is made unless it is there already."""

    def __init__(
        self, folder: str, runs: int, map_file: str | None, stress: bool, tell: Tell
    ) -> None:
        self._folder = folder
        self._runs = runs
        self._map_file = map_file
        self._stress = stress
        self._tell = tell
        self._kept = Kept(folder)

    def run_sketches(self, sides: tuple[_Side, _Side]) -> tuple[str, str]:
        """Free runs of both sides, as sketches."""
        ref, free = self._path("ref.sketch"), self._path("port.sketch")
        reference, port = (_Side(side.command, replace(side.order, sketch=True)) for side in sides)
        self._round(ref, reference, (), _free)
        self._round(free, port, (ref,), lambda c, o: _free(c, started(o, ref)))
        return ref, free

    def run_in_full(self, sides: tuple[_Side, _Side], start: str) -> Rounds:
        """Free runs and replays of both sides.

        Args:
            start: dump that the weights and batches are taken from, ``""`` for the reference's own.
        """
        reference, port = sides
        ref, free = self._path("ref"), self._path("port")
        made = Rounds(ref, free, replayed_path(ref), replayed_path(free))

        def begun(order: LaunchOrder) -> LaunchOrder:
            return started(order, start or ref)

        def free_reference(command: Sequence[str], order: LaunchOrder) -> Launched:
            return _free(command, started(order, start) if start else order)

        def replayed_reference(command: Sequence[str], order: LaunchOrder) -> Launched:
            return noise_runs(command, begun(order), ref, self._runs, aside=True)

        def free_port(command: Sequence[str], order: LaunchOrder) -> Launched:
            return _free(command, begun(order))

        def replayed_port(command: Sequence[str], order: LaunchOrder) -> Launched:
            by = made.reference_forced
            return forced_run(command, begun(order), by, free, map_file=self._map_file, aside=True)

        began = (start,) if start else ()
        self._round(ref, reference, began, free_reference)
        self._round(made.reference_forced, reference, (ref, *began), replayed_reference)
        self._round(free, port, (ref, *began), free_port)
        map_files = (self._map_file,) if self._map_file else ()
        made_from = (ref, made.reference_forced, free, *began)
        self._round(made.port_forced, port, made_from, replayed_port, map_files)
        if not self._stress:
            return made
        stressed = self._path("ref.stress"), self._path("port.stress")

        def stress(of: str, map_file: str | None) -> _Run:
            return lambda command, order: forced_run(
                command,
                begun(order),
                made.reference_forced,
                of,
                map_file=map_file,
                scaled=STRESS,
                aside=True,
            )

        self._round(stressed[0], reference, made_from[:2], stress(ref, None))
        self._round(stressed[1], port, made_from, stress(free, self._map_file), map_files)
        return replace(made, stressed=stressed)

    def _round(
        self,
        out: str,
        side: _Side,
        made_from: Sequence[str],
        run: _Run,
        files: Sequence[str] = (),
    ) -> None:
        name, line = os.path.splitext(os.path.basename(out))[0], " ".join(side.command)
        also = (name, str(self._runs))
        mark = self._kept.mark(side.command, side.order, made_from, also, files)
        if self._kept.holds(out, mark):
            self._tell(f"{out} is kept: nothing that it was made from has changed")
            return
        self._tell(f"{name}: {line}")
        launched = run(side.command, replace(side.order, out=out))
        if launched.exit_code:
            raise UsageError(
                f"{line} ended with exit code {launched.exit_code} in the round {name}; mend the "
                "script first, or run it by itself: paritydbg run"
            )
        self._kept.note(out, mark)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, f"{name}.h5")


def _free(command: Sequence[str], order: LaunchOrder) -> Launched:
    return run_script(command, order, aside=True)


_Run = Callable[[Sequence[str], LaunchOrder], Launched]
