"""Scripts run in rounds: free runs, forced replays and noise.

`pipeline` works on dumps that are there; here they are made, each kept and made again only where what
went into it has changed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from paritydbg.align.user_map import read_user_map
from paritydbg.dump.reader import open_dump
from paritydbg.errors import UsageError
from paritydbg.pipeline import plan_forcing
from paritydbg.session.forcing import write_plan
from paritydbg.session.kept import Kept
from paritydbg.session.launcher import Launched, run_script
from paritydbg.session.order import LaunchOrder

# Replays whose values are perturbed in their last bit, from which a spread is told.
NOISE_RUNS = 3
# Frameworks that can compute a whole net in float64: MindSpore has on CPU no float64 convolution,
# BatchNorm or cross entropy.
PROMOTABLE = frozenset({"torch"})

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Rounds:
    """The dumps of all rounds: free runs of both sides, and replays of each on the reference's values."""

    reference: str
    port: str
    reference_forced: str
    port_forced: str


def replayed_path(out: str) -> str:
    """Where the forced replay beside a free run goes: ``ref.forced.h5`` beside ``ref.h5``."""
    stem, ending = os.path.splitext(out)
    return f"{stem}.forced{ending}"


def forced_run(
    command: Sequence[str],
    order: LaunchOrder,
    reference: str,
    free: str,
    *,
    map_file: str | None = None,
    aside: bool = False,
) -> Launched:
    """Run a script as a forced replay of a reference.

    Args:
        command: the script's command line.
        order: what to capture; its start is taken from the reference.
        reference: dump whose values are given to the script's layers.
        free: dump of a free run of the same script, ``""`` to make one first, which is not kept.
        map_file: names pairs of layers, as for `paritydbg.diff`.
        aside: as for `run_script`.

    Raises:
        UsageError, DumpError, NothingCapturedError: as for `run_script`; the map cannot be used.
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
        pairs = plan_forcing(reference, free, map_file=map_file, rename=order.rename)
        write_plan(pairs, plan)
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
    values were moved in their last bit and, where the framework can, its error against one that
    computed in float64. Gradients of inputs are each layer's own share.

    Raises:
        As for `forced_run`.
    """
    with tempfile.TemporaryDirectory(prefix="paritydbg-", dir=_beside(order.out)) as folder:
        plan = os.path.join(folder, "plan.json")
        write_plan(plan_forcing(reference, reference), plan)
        start = replace(_started(order, reference), forced_plan=plan)
        moved = []
        told = [replace(start, perturbed=seed) for seed in range(1, runs + 1)]
        if runs and _framework(reference) in PROMOTABLE:
            told.append(replace(start, promoted=True))
        for number, one in enumerate(told):
            path = os.path.join(folder, f"moved{number}.h5")
            launched = run_script(command, replace(one, out=path), aside=aside)
            if launched.exit_code:
                return launched
            moved.append(path)
        return run_script(command, replace(start, noise_from=tuple(moved)), aside=aside)


def _started(order: LaunchOrder, reference: str) -> LaunchOrder:
    """The order with the reference's start, where it has none."""
    weights, inputs = order.weights_from or reference, order.inputs_from or reference
    return replace(order, weights_from=weights, inputs_from=inputs)


def run_rounds(
    reference: Sequence[str],
    port: Sequence[str],
    folder: str,
    order: LaunchOrder,
    *,
    runs: int = NOISE_RUNS,
    map_file: str | None = None,
    tell: Tell = lambda _: None,
) -> Rounds:
    """Run both scripts in all rounds: what `diff` needs for the whole job.

    Args:
        reference, port: the two command lines.
        folder: where the dumps are kept; a round whose inputs did not change is not repeated.
        order: what to capture of both.
        runs: perturbed replays of the reference, 0 to model its noise.
        map_file: names pairs of layers and parameters, as for `paritydbg.diff`.
        tell: is told in a line what is done.

    Raises:
        UsageError: a script failed or cannot be run; the map cannot be used.
        DumpError, NothingCapturedError, NothingComparedError: as for the single steps.
    """
    if map_file:
        # Before any script runs: a map that cannot be read would end the last round only.
        read_user_map(map_file)
    os.makedirs(folder, exist_ok=True)
    ref, free = (os.path.join(folder, name) for name in ("ref.h5", "port.h5"))
    made = Rounds(ref, free, replayed_path(ref), replayed_path(free))
    kept = Kept(folder)

    def round_of(
        out: str,
        command: Sequence[str],
        made_from: Sequence[str],
        run: _Run,
        files: Sequence[str] = (),
    ) -> None:
        name = os.path.splitext(os.path.basename(out))[0]
        mark = kept.mark(command, order, made_from, (name, str(runs)), files)
        if kept.holds(out, mark):
            tell(f"{out} is kept: nothing that it was made from has changed")
            return
        tell(f"{name}: {' '.join(command)}")
        launched = run(command, replace(order, out=out))
        if launched.exit_code:
            raise UsageError(
                f"{' '.join(command)} ended with exit code {launched.exit_code} in the round {name}; "
                "mend the script first, or run it by itself: paritydbg run"
            )
        kept.note(out, mark)

    def free_reference(command: Sequence[str], told: LaunchOrder) -> Launched:
        return run_script(command, told, aside=True)

    def replayed_reference(command: Sequence[str], told: LaunchOrder) -> Launched:
        return noise_runs(command, told, ref, runs, aside=True)

    def free_port(command: Sequence[str], told: LaunchOrder) -> Launched:
        return run_script(command, _started(told, ref), aside=True)

    def replayed_port(command: Sequence[str], told: LaunchOrder) -> Launched:
        start = _started(told, ref)
        forced_by = made.reference_forced
        return forced_run(command, start, forced_by, free, map_file=map_file, aside=True)

    round_of(ref, reference, (), free_reference)
    round_of(made.reference_forced, reference, (ref,), replayed_reference)
    round_of(free, port, (ref,), free_port)
    paired_by = (map_file,) if map_file else ()
    round_of(made.port_forced, port, (ref, made.reference_forced, free), replayed_port, paired_by)
    return made


_Run = Callable[[Sequence[str], LaunchOrder], Launched]


def _framework(dump: str) -> str:
    with open_dump(dump) as found:
        return found.run.environment.framework


def _beside(path: str) -> str:
    """The folder of a file: perturbed replays may be too large for the system's own."""
    return os.path.dirname(os.path.abspath(path))
