"""One walk over all events of the reference: each is judged, excused where it may be, and noted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paritydbg.measure.noise import Noise
from paritydbg.measure.precision import no_finer
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Event, Phase, Role
from paritydbg.model.finding import AttributeDifference
from paritydbg.model.pair import Alignment
from paritydbg.model.source import EventSource
from paritydbg.verdict.compare import paired_values
from paritydbg.verdict.excuses import BESIDE, badly_conditioned, kink_crossed, padding_apart
from paritydbg.verdict.flow import Flow
from paritydbg.verdict.gradients import OneSided, one_sided
from paritydbg.verdict.judge import MATTERS, Judge, Judged
from paritydbg.verdict.order import walk_order
from paritydbg.verdict.randomness import DRAWN, drawn_alike, through_own_mask
from paritydbg.verdict.sketched import has_values, padding_hidden
from paritydbg.verdict.told import Told, dtypes_of
from paritydbg.verdict.updates import Update, Updates, gradient_comparisons


class Walk:
    """One walk up the ladder over all events of the reference.

    Args:
        forced: whether the runs are forced replays: only what they tested is walked over.
    """

    def __init__(
        self,
        alignment: Alignment,
        compared: tuple[Comparison, ...],
        reference: EventSource,
        port: EventSource,
        noise: Noise,
        forced: bool = False,
    ) -> None:
        self._forced = forced
        self._reference = reference
        self._port = port
        self._compared = compared
        self._by_event: dict[Event, Comparison] = {}
        for comparison in compared:
            for event in comparison.pair.reference:
                self._by_event.setdefault(event, comparison)
        self.flow = Flow(reference.run, reference.events)
        self.judge = Judge(self.flow, noise, forced)
        self.one_sided: OneSided = one_sided(alignment, compared, reference, port)
        self.updates: dict[Event, Update] = {}
        self.notes: list[str] = []
        self._updater = Updates(gradient_comparisons(compared), reference, port, forced)
        self._applied_known = {
            (event.key.step, event.key.rank)
            for event in reference.events
            if event.key.role in (Role.GRAD, Role.GRAD_APPLIED)
        }

    def run(self) -> None:
        """Judge every event in order."""
        for event in sorted(self._reference.events, key=walk_order):
            comparison = self._by_event.get(event)
            if self._forced and comparison is None:
                continue
            if comparison is not None and comparison.verdict is Verdict.UNTESTED:
                self.judge.unpaired(event)
            elif comparison is None:
                if event in self.one_sided.missing or event in self.one_sided.lost:
                    # That nothing goes on from a layer is told where it should have arrived.
                    arrives = event.key.role is not Role.GRAD_INPUT
                    self.judge.missing(event, arrives)
                else:
                    self.judge.unpaired(event)
            elif comparison.pair.first is not event:
                self.judge.settled(event, replace(comparison, verdict=Verdict.MATCH), 0.0)
            elif not self._judged_as_update(event, comparison):
                self._judge(event, comparison)

    def told(self) -> Told:
        """All that the walk told, for gathering."""
        judged = tuple(self.judge.judged.values())
        return Told(
            judged,
            judged,
            self.updates,
            self.flow,
            self.one_sided,
            self._reference,
            self._reordered,
        )

    def _reordered(self, comparison: Comparison) -> bool:
        left, right, problem = paired_values(comparison.pair, self._reference, self._port)
        if problem:
            return False
        return np.array_equal(np.sort(left, axis=None), np.sort(right, axis=None))

    def confirm(self, differences: dict[str, tuple[AttributeDifference, ...]]) -> None:
        """Make origins of differences that are small, have a reason, and did not come in."""
        for event, judged in list(self.judge.judged.items()):
            comparison = judged.comparison
            if event.key.role is not Role.OUTPUT or comparison is None or judged.origin:
                continue
            metrics = comparison.metrics
            told = [d for d in differences.get(event.key.name, ()) if d.changes == "forward"]
            if not told or metrics is None or comparison.verdict is Verdict.NONFINITE:
                continue
            own = comparison.allowance.l2 if comparison.allowance is not None else 0.0
            came_in = 3.0 * judged.inherited * metrics.reference_l2
            rounding = self._rounding(event, comparison)
            if metrics.difference_l2 > max(came_in, rounding) and judged.inherited < MATTERS:
                done = replace(
                    comparison,
                    verdict=Verdict.DIVERGED,
                    reason=f"beyond rounding ({rounding:.1e}), and explained by an attribute"
                    if metrics.difference_l2 <= own
                    else comparison.reason,
                )
                self.judge.revise(event, done, origin=True)

    def blame_losses(self) -> None:
        """Make a loss the origin where it is beyond rounding and the gradient it starts is wrong.

        Near its optimum, or at a start where all classes are equally likely, two losses may come out
        much closer than their derivatives.
        """
        for event, judged in list(self.judge.judged.items()):
            if event.key.role is not Role.GRAD_OUTPUT or not judged.origin:
                continue
            for source in self.flow.sources[event]:
                loss = self.judge.judged.get(source)
                if source.key.role is not Role.LOSS or loss is None or loss.comparison is None:
                    continue
                if loss.comparison.verdict is Verdict.SUSPECT and judged.comparison is not None:
                    told = replace(loss.comparison, verdict=Verdict.DIVERGED)
                    self.judge.revise(source, told, origin=True)
                    followed = replace(judged.comparison, verdict=Verdict.INHERITED)
                    self.judge.revise(event, followed, origin=False)

    def _rounding(self, event: Event, comparison: Comparison) -> float:
        prior = self._by_event[event]
        return prior.allowance.l2 if prior.allowance is not None else 0.0

    def _judge(self, event: Event, comparison: Comparison) -> None:
        judged = self.judge.compared(comparison)
        if not judged.origin or judged.comparison is None or judged.comparison.metrics is None:
            return
        if self._unseen_calls(event):
            reason = "the layer's calls of this step have no partners, and may be more or fewer"
            untested = replace(judged.comparison, verdict=Verdict.UNTESTED, reason=reason)
            self.judge.settled(event, untested, judged.inherited)
            return
        done = judged.comparison
        if self.flow.recurs(event.key.name):
            if event.key.role in BESIDE and not has_values(done.pair):
                reason = padding_hidden(event)
                untested = replace(done, verdict=Verdict.UNTESTED, reason=reason)
                self.judge.settled(event, untested, 0.0)
                return
            outside = padding_apart(done, self._reference, self._port)
            if outside is not None and outside < no_finer(MATTERS, *dtypes_of(done)):
                reason = "it differs only where the reference's sequences are over: padding"
                self.judge.settled(
                    event, replace(done, verdict=Verdict.MATCH, reason=reason), outside
                )
                return
        reason = kink_crossed(done, self._reference, self._port)
        if not reason:
            reason = self._magnified(event, judged)
        if not reason:
            made_of = (self._by_event.get(source) for source in self.flow.sources[event])
            sources = tuple(source for source in made_of if source is not None)
            reason = drawn_alike(done, sources, self._reference, self._port)
            if reason and not self.notes:
                self.notes.append(
                    f"{event.key.place}: {reason}; what follows cannot be told from it. Record both "
                    "sides with --no-dropout to compare what lies behind"
                )
        if not reason and self._forced:
            reason = self._own_mask(event, done)
        if reason:
            excused = replace(done, verdict=Verdict.INHERITED, reason=reason)
            self.judge.revise(event, excused, origin=False)

    def _unseen_calls(self, event: Event) -> bool:
        """Whether a buffer was moved by calls of its layer of which none could be compared."""
        key = event.key
        if key.role is not Role.BUFFER or key.phase is not Phase.UPDATE:
            return False
        calls = self.flow.calls_of(self.flow.owner(key.name), key.step, key.rank)
        seen = [e for call in calls for e in (*call.inputs, *call.outputs)]
        return bool(seen) and not any(e in self._by_event for e in seen)

    def _own_mask(self, event: Event, comparison: Comparison) -> str:
        """Why a replayed gradient went through another mask of a dropout, ``""`` if it did not."""
        for passage in self.flow.passages(event):
            value, masked, arrived = (self._by_event.get(one) for one in passage)
            if value is None or masked is None or arrived is None:
                continue
            drawn = self.judge.judged[masked.pair.first].comparison
            if drawn is None or not drawn.reason.startswith(DRAWN):
                continue
            sides = self._reference, self._port
            reason = through_own_mask(comparison, value, masked, arrived, *sides)
            if reason:
                return reason
        return ""

    def _magnified(self, event: Event, judged: Judged) -> str:
        """Why a normalising layer may lie this far off, ``""`` if it may not."""
        call = self.flow.call(event)
        comparison = judged.comparison
        if call is None or comparison is None or comparison.metrics is None:
            return ""
        if not self.flow.normalises(call.name) or comparison.allowance is None:
            return ""
        times = badly_conditioned(comparison, call, self._by_event, self._reference)
        if comparison.metrics.difference_l2 <= times * comparison.allowance.l2:
            return f"its input's mean is {times:.0f} times its spread: rounding grows as much"
        return ""

    def _judged_as_update(self, event: Event, comparison: Comparison) -> bool:
        key = event.key
        if key.role is not Role.PARAMETER or key.phase is not Phase.UPDATE:
            return False
        if (key.step, key.rank) not in self._applied_known:
            return False
        update = self._updater.judge(comparison, self._given_differs(event))
        if update is None:
            return False
        self.updates[event] = update
        self.judge.settled(event, update.comparison, update.carried)
        return True

    def _given_differs(self, event: Event) -> float:
        """The relative difference of the gradient that an update was made from."""
        if self._forced:
            return 0.0
        return max(
            (
                self.judge.carried(source)
                for source in self.flow.sources[event]
                if source.key.role in (Role.GRAD, Role.GRAD_APPLIED)
            ),
            default=0.0,
        )
