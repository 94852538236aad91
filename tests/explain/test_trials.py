"""Candidates on captured tensors: what works comes first, what proves nothing is drawn anew, and said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paritydbg.explain.context import Context
from paritydbg.explain.trials import tried
from paritydbg.model.event import Role
from paritydbg.model.finding import Candidate, Finding, Stage
from paritydbg.model.record import OptimizerRecord
from paritydbg.model.trial import Trial, TrialResult
from paritydbg.report.lines import finding_lines, trial_text
from tests.explain.memory_run import MemoryRun, context_of, finding_of
from tests.report.example import example

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
G = np.ones((4, 6), np.float32)
LINES = ("nn.LeakyReLU(alpha=0.2)", "nn.LeakyReLU(alpha=0.01)")


def leaky(x: np.ndarray[Any, Any], slope: float) -> np.ndarray[Any, Any]:
    return np.where(x > 0, x, slope * x).astype(np.float32)


def runs(x: np.ndarray[Any, Any] = X, api: str = "torch.nn.LeakyReLU") -> tuple[Context, Finding]:
    """A LeakyReLU whose slope is another one in the port."""
    made = []
    for slope, kind in ((0.01, api), (0.2, "mindspore.nn.LeakyReLU")):
        run = MemoryRun(kind.partition(".")[0])
        run.layer("act", kind, negative_slope=slope)
        run.add(Role.INPUT, "act", x, slot="0")
        run.add(Role.OUTPUT, "act", leaky(x, slope) if x.any() else x + slope)
        run.add(Role.GRAD_OUTPUT, "act", G)
        run.add(Role.GRAD_INPUT, "act", np.where(x > 0, 1, slope).astype(np.float32), slot="0")
        made.append(run)
    context = context_of(*made)
    candidates = tuple(Candidate("mindspore.nn.LeakyReLU", line) for line in LINES)
    finding = finding_of(context, Stage.FORWARD, "act", Role.OUTPUT, candidates=candidates)
    return context, finding


class Framework:
    """Computes a LeakyReLU of the slope that the call names, and remembers what it was asked."""

    def __init__(self, here: Sequence[str] = ("torch", "mindspore")) -> None:
        self.here = here
        self.asked: list[tuple[str, Trial]] = []

    def __call__(self, name: str, trials: Sequence[Trial]) -> list[TrialResult]:
        self.asked += [(name, trial) for trial in trials]
        return [self._run(trial) for trial in trials] if name in self.here else []

    def _run(self, trial: Trial) -> TrialResult:
        told = dict(trial.call.keywords)
        slope = float(told.get("alpha", told.get("negative_slope", 0.01)))
        x = trial.inputs["0"]
        gradient = np.where(x > 0, 1, slope).astype(np.float32) * trial.grad_outputs[""]
        return TrialResult({"": leaky(x, slope)}, {"0": gradient})


def test_what_works_comes_first_with_its_errors() -> None:
    context, finding = runs()
    (done,) = tried([(finding, context)], Framework())
    assert [c.code for c in done.candidates] == [LINES[1], LINES[0]]
    good, bad = (c.trial for c in done.candidates)
    assert good is not None
    assert (good.works, good.forward, good.backward) == (True, 0.0, 0.0)
    assert bad is not None
    assert bad.works is False
    assert bad.forward == pytest.approx(
        float(np.linalg.norm(leaky(X, 0.2) - leaky(X, 0.01)) / np.linalg.norm(leaky(X, 0.01))),
        rel=1e-5,
    )
    assert trial_text(good).startswith("works")
    assert trial_text(bad).startswith("does not give")


def test_all_candidates_of_all_findings_run_at_once() -> None:
    context, finding = runs()
    framework = Framework()
    calls = []

    def run(name: str, trials: Sequence[Trial]) -> list[TrialResult]:
        calls.append(len(trials))
        return framework(name, trials)

    tried([(finding, context), (finding, context)], run)
    assert calls == [4]


def test_without_mindspore_nothing_is_tried_and_that_is_said() -> None:
    context, finding = runs()
    (done,) = tried([(finding, context)], Framework(here=("torch",)))
    assert [c.code for c in done.candidates] == list(LINES)
    assert all(c.trial and c.trial.works is None for c in done.candidates)
    assert "not installed" in trial_text(done.candidates[0].trial)  # type: ignore[arg-type]


def test_inputs_that_prove_nothing_are_drawn_anew_and_that_is_said() -> None:
    context, finding = runs(np.zeros((4, 6), np.float32))
    framework = Framework()
    (done,) = tried([(finding, context)], framework)
    assert framework.asked[0][0] == "torch"
    assert all(trial.inputs["0"].std() > 0 for _, trial in framework.asked)
    first = done.candidates[0]
    assert first.code == LINES[1]
    assert first.trial is not None
    assert first.trial.works is True
    assert "drawn" in first.trial.words
    (untold,) = tried([(finding, context)], Framework(here=("mindspore",)))
    assert untold.candidates[0].trial is not None
    assert untold.candidates[0].trial.works is None


def test_a_gradient_that_others_share_is_not_held_against_a_candidate() -> None:
    context, finding = runs()

    def shared(name: str, trials: Sequence[Trial]) -> list[TrialResult]:
        done = Framework()(name, trials)
        return [replace(r, grad_inputs={"0": r.grad_inputs["0"] * 0.5}) for r in done]

    (done,) = tried([(finding, context)], shared)
    first = done.candidates[0].trial
    assert first is not None
    assert (first.works, first.backward) == (True, None)
    assert "not told" in first.words
    (own,) = tried([(finding, context)], shared, own_gradients=True)
    assert all(c.trial and c.trial.works is False for c in own.candidates)


def test_what_raises_does_not_work_and_none_that_works_is_said() -> None:
    context, finding = runs()

    def raises(_: str, trials: Sequence[Trial]) -> list[TrialResult]:
        return [TrialResult(error="RuntimeError: no kernel") for _ in trials]

    (done,) = tried([(finding, context)], raises)
    told = [line.text for line in finding_lines(done, example())]
    assert "does not run: RuntimeError: no kernel" in told
    assert "none of these gives the reference's values here" in told


def moved(rate: float) -> Callable[[str, Sequence[Trial]], list[TrialResult]]:
    def run(_: str, trials: Sequence[Trial]) -> list[TrialResult]:
        return [
            TrialResult(values={n: v - rate * t.gradients[n] for n, v in t.values.items()})
            for t in trials
        ]

    return run


def test_an_optimizer_is_judged_by_how_far_it_moves() -> None:
    made = []
    for rate in (0.1, 0.2):
        run = MemoryRun()
        run.parameter("fc.weight", X * 100)
        run.add(Role.GRAD_APPLIED, "fc.weight", X)
        run.add(Role.PARAMETER, "fc.weight", X * 100 - rate * X, after=True)
        run.optimizers.append(
            OptimizerRecord("SGD", "torch.optim.SGD", ((("lr", rate),),), (("fc.weight",),))
        )
        made.append(run)
    context = context_of(*made)
    finding = Finding(
        Stage.UPDATE,
        context.comparisons[-1].verdict,
        "step1",
        "",
        candidates=(Candidate("nn.SGD", "nn.SGD(net.trainable_params(), learning_rate=0.1)"),),
    )
    (right,) = tried([(finding, context)], moved(0.1))
    (wrong,) = tried([(finding, context)], moved(0.11))
    assert right.candidates[0].trial is not None
    assert right.candidates[0].trial.works is True
    assert wrong.candidates[0].trial is not None
    assert wrong.candidates[0].trial.works is False
    assert wrong.candidates[0].trial.state == pytest.approx(0.1, rel=1e-2)
