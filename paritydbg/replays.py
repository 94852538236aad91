"""One script run again on a reference's values: a forced replay, and the replays that tell its noise."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace

from paritydbg.align.user_map import read_user_map
from paritydbg.dump.reader import open_dump
from paritydbg.pipeline import plan_forcing
from paritydbg.session.forcing import write_plan
from paritydbg.session.launcher import Launched, run_script
from paritydbg.session.order import LaunchOrder

# Replays whose values are perturbed in their last bit, from which a spread is told.
NOISE_RUNS = 3
# Frameworks that can compute a whole net in float64: MindSpore has on CPU no float64 convolution,
# BatchNorm or cross entropy.
PROMOTABLE = frozenset({"torch"})


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
    scaled: float = 0.0,
    aside: bool = False,
) -> Launched:
    """Run a script as a forced replay of a reference.

    Args:
        command: the script's command line.
        order: what to capture; its start is taken from the reference.
        reference: dump whose values are given to the script's layers.
        free: dump of a free run of the same script, ``""`` to make one first, which is not kept.
        map_file: names pairs of layers, as for `paritydbg.diff`.
        scaled: what the inputs of leaves are multiplied by, 0 to leave them; outputs alone are
            recorded then.
        aside: as for `run_script`.

    Raises:
        UsageError, DumpError, NothingCapturedError: as for `run_script`; the map cannot be used.
        NothingComparedError: the script and the reference have no layer in common.
    """
    start = replace(started(order, reference), scaled=scaled)
    if scaled:
        start = replace(start, roles=("output",))
    with tempfile.TemporaryDirectory(prefix="paritydbg-") as folder:
        if not free:
            free = os.path.join(folder, "free.h5")
            told = replace(start, out=free, scaled=0.0, roles=order.roles)
            launched = run_script(command, told, aside=aside)
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
        start = replace(started(order, reference), forced_plan=plan)
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


def paired_by(order: LaunchOrder, map_file: str) -> LaunchOrder:
    """The order of a port's run with the pairs of a map file, by which it takes the reference's weights.

    Raises:
        UsageError: the map cannot be used.
    """
    given = read_user_map(map_file)
    return replace(
        order,
        rename=(*order.rename, *given.rename),
        layer_pairs=given.layers,
        parameter_pairs=given.parameters,
    )


def started(order: LaunchOrder, reference: str) -> LaunchOrder:
    """The order with the reference's start, where it has none."""
    weights, inputs = order.weights_from or reference, order.inputs_from or reference
    return replace(order, weights_from=weights, inputs_from=inputs)


def _framework(dump: str) -> str:
    with open_dump(dump) as found:
        return found.run.environment.framework


def _beside(path: str) -> str:
    """The folder of a file: perturbed replays may be too large for the system's own."""
    return os.path.dirname(os.path.abspath(path))
