"""Scripts run in rounds: free runs, forced replays, noise, and the verdict on all of them.

`pipeline` works on dumps that are there; here they are made, each kept and made again only where what
went into it has changed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from paritydbg.errors import UsageError
from paritydbg.model.report import Report
from paritydbg.pipeline import Progress, diff, plan_forcing
from paritydbg.session.forcing import write_plan
from paritydbg.session.kept import Kept
from paritydbg.session.launcher import Launched, run_script
from paritydbg.session.order import LaunchOrder

# Replays whose values are perturbed in their last bit, from which a spread is told.
NOISE_RUNS = 3

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Files:
    """Where the dumps of one comparison lie.

    Attributes:
        folder: of all of them.
    """

    folder: str

    def path(self, name: str) -> str:
        """The dump of that round: ``ref``, ``ref.forced``, ``port``, ``port.forced``."""
        return os.path.join(self.folder, f"{name}.h5")


def forced_run(
    command: Sequence[str], order: LaunchOrder, reference: str, free: str, *, aside: bool = False
) -> Launched:
    """Run a script as a forced replay of a reference.

    Args:
        command: the script's command line.
        order: what to capture; its start is taken from the reference.
        reference: dump whose values are given to the script's layers.
        free: dump of a free run of the same script, ``""`` to make one first, which is not kept.
        aside: as for `run_script`.

    Raises:
        UsageError, DumpError, NothingCapturedError: as for `run_script`.
        NothingComparedError: the script and the reference have no layer in common.
    """
    start = _started(order, reference)
    with tempfile.TemporaryDirectory(prefix="paritydbg-") as folder:
        if not free:
            free = os.path.join(folder, "free.h5")
            launched = run_script(command, replace(start, out=free), aside=aside)
            if launched.exit_code:
                return launched
        plan = os.path.join(folder, "plan.json")
        write_plan(plan_forcing(reference, free, rename=order.rename), plan)
        return run_script(command, replace(start, forced_plan=plan), aside=aside)


def noise_runs(
    command: Sequence[str],
    order: LaunchOrder,
    reference: str,
    runs: int = NOISE_RUNS,
    *,
    aside: bool = False,
) -> Launched:
    """Replay a reference on its own values, and record how far rounding alone moves each tensor.

    The replay goes to ``order.out``: each tensor with its spread over ``runs`` replays whose given
    values were moved in their last bit. Gradients of inputs are each layer's own share.

    Raises:
        As for `forced_run`.
    """
    with tempfile.TemporaryDirectory(prefix="paritydbg-", dir=_beside(order.out)) as folder:
        plan = os.path.join(folder, "plan.json")
        write_plan(plan_forcing(reference, reference), plan)
        start = replace(_started(order, reference), forced_plan=plan)
        moved = []
        for seed in range(1, runs + 1):
            path = os.path.join(folder, f"moved{seed}.h5")
            told = replace(start, out=path, perturbed=seed)
            launched = run_script(command, told, aside=aside)
            if launched.exit_code:
                return launched
            moved.append(path)
        return run_script(command, replace(start, noise_from=tuple(moved)), aside=aside)


def _started(order: LaunchOrder, reference: str) -> LaunchOrder:
    """The order with the reference's start, where it has none."""
    weights, inputs = order.weights_from or reference, order.inputs_from or reference
    return replace(order, weights_from=weights, inputs_from=inputs)


def bisect_scripts(
    reference: Sequence[str],
    port: Sequence[str],
    folder: str,
    order: LaunchOrder,
    *,
    runs: int = NOISE_RUNS,
    map_file: str | None = None,
    tell: Tell = lambda _: None,
    progress: Progress | None = None,
) -> Report:
    """Run both scripts in all rounds and compare: the whole job.

    Args:
        reference, port: the two command lines.
        folder: where the dumps are kept; a round whose inputs did not change is not repeated.
        order: what to capture of both.
        runs: perturbed replays of the reference, 0 to model its noise.
        map_file: as for `diff`.
        tell: is told in a line what is done.
        progress: as for `diff`.

    Raises:
        UsageError: a script failed, or cannot be run.
        DumpError, NothingCapturedError, NothingComparedError: as for the single steps.
    """
    os.makedirs(folder, exist_ok=True)
    files, kept = Files(folder), Kept(folder)

    def round_of(name: str, command: Sequence[str], made_from: Sequence[str], run: _Run) -> None:
        out = files.path(name)
        mark = kept.mark(command, order, made_from, (name, str(runs)))
        if kept.holds(out, mark):
            tell(f"{out} is kept: nothing that it was made from has changed")
            return
        tell(f"{name}: {' '.join(command)}")
        launched = run(replace(order, out=out))
        if launched.exit_code:
            raise UsageError(
                f"{' '.join(command)} ended with exit code {launched.exit_code} in the round {name}; "
                "mend the script first, or run it by itself: paritydbg run"
            )
        kept.note(out, mark)

    ref, replayed, free = (files.path(name) for name in ("ref", "ref.forced", "port"))
    round_of("ref", reference, (), lambda told: run_script(reference, told, aside=True))
    round_of(
        "ref.forced",
        reference,
        (ref,),
        lambda told: noise_runs(reference, told, ref, runs, aside=True),
    )

    def port_run(told: LaunchOrder) -> Launched:
        return run_script(port, replace(told, weights_from=ref, inputs_from=ref), aside=True)

    round_of("port", port, (ref,), port_run)
    round_of(
        "port.forced",
        port,
        (ref, replayed, free),
        lambda told: forced_run(
            port,
            replace(told, weights_from=ref, inputs_from=ref),
            replayed,
            free,
            aside=True,
        ),
    )
    return diff(
        ref,
        free,
        map_file=map_file,
        rename=order.rename,
        forced=(replayed, files.path("port.forced")),
        progress=progress,
    )


_Run = Callable[[LaunchOrder], Launched]


def _beside(path: str) -> str:
    """The folder of a file: perturbed replays may be too large for the system's own."""
    return os.path.dirname(os.path.abspath(path))
