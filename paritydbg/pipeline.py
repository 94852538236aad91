"""The way through, and the only place that knows its order: align, compare, find origins, explain."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from paritydbg.align.dumps import align_dumps
from paritydbg.align.forcing_plan import forcing_plan
from paritydbg.align.user_map import UserMap, read_user_map
from paritydbg.dump.reader import open_dump
from paritydbg.errors import NothingComparedError, UsageError
from paritydbg.explain.attributes import attribute_differences
from paritydbg.explain.context import Context
from paritydbg.explain.explain import explain
from paritydbg.explain.handover import handover
from paritydbg.explain.trials import Runner, tried
from paritydbg.measure.noise import ModelledNoise
from paritydbg.model.comparison import Comparison
from paritydbg.model.event import Phase
from paritydbg.model.finding import Finding
from paritydbg.model.forcing import ForcingPlan
from paritydbg.model.handover import Handover
from paritydbg.model.pair import Alignment
from paritydbg.model.report import Report
from paritydbg.model.source import EventSource
from paritydbg.session.forcing import is_forced
from paritydbg.verdict.closeups import closeup
from paritydbg.verdict.compare import compare
from paritydbg.verdict.ladder import find
from paritydbg.verdict.latent import Stressed, latent
from paritydbg.verdict.merging import without_repeats
from paritydbg.verdict.replay import Joined, Replay

Progress = Callable[[int, int], None]


def diff(
    reference: str | os.PathLike[str],
    port: str | os.PathLike[str],
    *,
    map_file: str | os.PathLike[str] | None = None,
    rename: Sequence[tuple[str, str]] = (),
    forced: tuple[str | os.PathLike[str] | None, str | os.PathLike[str]] | None = None,
    stressed: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
    progress: Progress | None = None,
    run: Runner | None = None,
) -> Report:
    """The report on two dumps: every pair compared, every independent divergence found and explained.

    Args:
        reference, port: paths of the two dumps.
        map_file: YAML or TOML file that names pairs of layers and parameters.
        rename: rename rules from the reference's names to the port's, pairs of pattern and
            replacement.
        forced: forced replays of the reference by itself (None where there is none) and of the port:
            each layer is then judged on the reference's own inputs.
        stressed: replays of both in which layers were fed smaller values: what parts there alone is
            reported as latent.
        progress: told (pairs done, pairs in all) while comparing.
        run: runs candidates on the captured tensors (`paritydbg.session.trial_runner.run_trials`), each
            then says how near it came; None leaves them untried.

    Raises:
        DumpError: one of the dumps cannot be read.
        UsageError: the map file cannot be used.
        NothingComparedError: not one event of the two could be paired and compared.
    """
    with open_dump(reference) as left, open_dump(port) as right:
        user_map = read_user_map(map_file) if map_file is not None else UserMap()
        user_map = user_map.with_rename(tuple(rename))
        with ExitStack() as stack:
            replay = small = None
            if forced is not None:
                mine = stack.enter_context(open_dump(forced[0] or reference))
                yours = stack.enter_context(open_dump(forced[1]))
                replay = Replay(mine, yours, is_forced(mine.run))
            if stressed is not None:
                small = Stressed(*(stack.enter_context(open_dump(path)) for path in stressed))
            return judge(left, right, user_map, progress, replay, small, run)


def reproduce(
    reference: str | os.PathLike[str],
    port: str | os.PathLike[str],
    number: int,
    run: Runner,
    *,
    map_file: str | os.PathLike[str] | None = None,
    rename: Sequence[tuple[str, str]] = (),
    forced: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
    anonymous: bool = False,
) -> Handover:
    """One finding of the report on two dumps, run alone in both frameworks.

    Args:
        number: of the finding, from 1, as the report counts them.
        run: runs trials (`paritydbg.session.trial_runner.run_trials`).
        anonymous: whether to draw other tensors in place of the captured ones.
        reference, port, map_file, rename, forced: as for `diff`.

    Raises:
        UsageError: there is no such finding, or it cannot be reproduced alone; the text says why.
        DumpError, NothingComparedError: as for `diff`.
    """
    with open_dump(reference) as left, open_dump(port) as right, ExitStack() as stack:
        user_map = read_user_map(map_file) if map_file is not None else UserMap()
        replay = None
        if forced is not None:
            mine, yours = (stack.enter_context(open_dump(path)) for path in forced)
            replay = Replay(mine, yours, is_forced(mine.run))
        given = user_map.with_rename(tuple(rename))
        report = judge(left, right, given, None, replay, None, run)
        count = len(report.findings)
        if not 1 <= number <= count:
            known = f"1 to {count}" if count > 1 else "1 alone" if count else "none"
            raise UsageError(f"there is no finding {number}; the report has {known}")
        finding = report.findings[number - 1]
        alignment, comparisons = report.alignment, report.comparisons
        context = Context(left, right, alignment, comparisons)
        if replay is not None and finding.phase is not Phase.UPDATE:
            context = _context(left, right, alignment, comparisons, replay)
        own = replay is not None and replay.own_gradients
        return handover(finding, context, run, own_gradients=own, anonymous=anonymous)


def plan_forcing(
    reference: str | os.PathLike[str],
    port: str | os.PathLike[str],
    *,
    map_file: str | os.PathLike[str] | None = None,
    rename: Sequence[tuple[str, str]] = (),
) -> ForcingPlan:
    """Which of the reference's values a forced replay of the port gives to which layer.

    Args:
        reference: path of the reference's dump. Where it is a forced replay of the reference by
            itself, gradients of inputs are given as well.
        port: path of a free run of what is to be replayed; the reference's own for the reference.
        map_file, rename: as for `diff`.

    Raises:
        DumpError: one of the dumps cannot be read.
        UsageError: the map file cannot be used.
        NothingComparedError: the two have no layer in common.
    """
    with open_dump(reference) as left, open_dump(port) as right:
        user_map = read_user_map(map_file) if map_file is not None else UserMap()
        pairs = align_dumps(left, right, user_map=user_map.with_rename(tuple(rename))).events
        plan = forcing_plan(pairs, left, is_forced(left.run))
        if not plan.given:
            raise NothingComparedError(_nothing(left, right))
        return plan


def judge(
    reference: EventSource,
    port: EventSource,
    user_map: UserMap,
    progress: Progress | None = None,
    replay: Replay | None = None,
    stressed: Stressed | None = None,
    run: Runner | None = None,
) -> Report:
    """The report on two captured runs that are open already.

    Raises:
        NothingComparedError: not one event of the two could be paired and compared.
    """
    alignment = align_dumps(reference, port, user_map=user_map)
    compared = compare(alignment, reference, port, ModelledNoise(), progress)
    diagnosis = find(
        alignment,
        compared,
        reference,
        port,
        attribute_differences=attribute_differences,
        replay=replay,
    )
    if not diagnosis.coverage.compared:
        raise NothingComparedError(_nothing(reference, port))
    # An update belongs to the gradients of its own run, those of the replay to the layers.
    stepped = Context(reference, port, alignment, diagnosis.comparisons)
    replayed = (
        _context(reference, port, alignment, diagnosis.comparisons, replay) if replay else stepped
    )

    def context(finding: Finding) -> Context:
        return stepped if finding.phase is Phase.UPDATE else replayed

    hidden: tuple[Finding, ...] = ()
    note = ""
    if stressed is not None:
        hidden, note = latent(alignment, diagnosis.comparisons, stressed)
        known = {finding.place for finding in (*diagnosis.findings, *diagnosis.suspects)}
        hidden = tuple(_unseen(one, replayed) for one in hidden if one.place not in known)
    findings = without_repeats(explain(one, context(one)) for one in diagnosis.findings)
    if run is not None:
        own_gradients = replay is not None and replay.own_gradients
        findings = tried([(one, context(one)) for one in findings], run, own_gradients)
    suspects = [explain(one, replayed) for one in diagnosis.suspects]
    return Report(
        reference_path=reference.path,
        port_path=port.path,
        reference=reference.run,
        port=port.run,
        alignment=alignment,
        comparisons=diagnosis.comparisons,
        findings=tuple(_looked_at(one, context(one)) for one in findings),
        suspects=(*(_looked_at(one, replayed) for one in suspects), *hidden),
        coverage=diagnosis.coverage,
        notes=(*diagnosis.notes, *((note,) if note else ())),
    )


def _looked_at(finding: Finding, context: Context) -> Finding:
    """A finding with a closer look at the values that decided it."""
    if finding.evidence is None:
        return finding
    look = closeup(finding.evidence, context.reference, context.port)
    return replace(finding, closeup=look)


def _unseen(finding: Finding, context: Context) -> Finding:
    """A latent finding, explained by what the layers were told: its values are of another run."""
    return replace(explain(replace(finding, evidence=None), context), evidence=finding.evidence)


def _context(
    reference: EventSource,
    port: EventSource,
    alignment: Alignment,
    comparisons: tuple[Comparison, ...],
    replay: Replay,
) -> Context:
    """What explanations may look at: where a replay tested, its tensors in place of the free run's."""
    pairs = tuple(comparison.pair for comparison in comparisons)
    return Context(
        Joined(reference, replay.reference),
        Joined(port, replay.port),
        replace(alignment, events=pairs),
        comparisons,
    )


def _nothing(reference: EventSource, port: EventSource) -> str:
    """Why two dumps have nothing in common, as far as their indices tell."""
    steps = [{event.key.step for event in source.events} for source in (reference, port)]
    both = f"{reference.path} and {port.path}"
    if steps[0] and steps[1] and not steps[0] & steps[1]:
        return (
            f"{both} have no step in common (steps {_ranges(steps[0])} against "
            f"{_ranges(steps[1])}); record the same --steps on both sides"
        )
    names = [
        ", ".join(layer.name for layer in source.run.layers if layer.name)[:60]
        for source in (reference, port)
    ]
    return (
        f"{both} have nothing in common to compare (layers {names[0] or 'none'} … against "
        f"{names[1] or 'none'} …); name pairs with --map or --rename"
    )


def _ranges(steps: set[int]) -> str:
    return str(min(steps)) if len(steps) == 1 else f"{min(steps)}-{max(steps)}"
