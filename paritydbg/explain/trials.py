"""Candidates that are tried: run on the captured tensors, and judged by what the reference has there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paritydbg.explain.code_lines import call_of
from paritydbg.explain.context import Context
from paritydbg.explain.layer_code import layer_code
from paritydbg.explain.reading import flavour_of
from paritydbg.explain.trial_inputs import Expected, layer_trial, optimizer_trial
from paritydbg.measure.layer_noise import gradient_rounding, rounding
from paritydbg.model.finding import Candidate, Finding, Stage
from paritydbg.model.trial import Array, Call, Trial, TrialOutcome, TrialResult

# Runs trials of one framework, in order; an empty answer where that framework is not installed.
Runner = Callable[[str, Sequence[Trial]], Sequence[TrialResult]]

# Trials of more findings than a person works on at once only cost time.
_MOST_FINDINGS = 8


@dataclass(frozen=True)
class _Prepared:
    """A finding's trials before they run: one for each candidate that has a line of code."""

    finding: Finding
    calls: tuple[Call | None, ...]
    base: Trial | None
    expected: Expected
    words: str = ""

    @property
    def trials(self) -> list[Trial]:
        """To be run, in the order of the candidates."""
        if self.base is None:
            return []
        return [replace(self.base, call=call) for call in self.calls if call is not None]


def tried(
    findings: Sequence[tuple[Finding, Context]], run: Runner, own_gradients: bool = False
) -> tuple[Finding, ...]:
    """The findings with their candidates tried, those that work first; all in one run.

    Args:
        findings: each with what its tensors are looked up in.
        run: runs trials.
        own_gradients: whether gradients of inputs in the contexts are each layer's own share.
    """
    prepared = [
        _prepared(finding, context, run, own_gradients)
        for finding, context in findings[:_MOST_FINDINGS]
    ]
    trials = [trial for one in prepared for trial in one.trials]
    results = list(run("mindspore", trials)) if trials else []
    here = len(results) == len(trials)
    told = []
    for one in prepared:
        own, results = results[: len(one.trials)], results[len(one.trials) :]
        told.append(_with_outcomes(one, own if here else None))
    return (*told, *(finding for finding, _ in findings[_MOST_FINDINGS:]))


def _prepared(finding: Finding, context: Context, run: Runner, own_gradients: bool) -> _Prepared:
    calls = tuple(call_of(one.code) if one.code else None for one in finding.candidates)
    if not any(calls):
        return _Prepared(finding, calls, None, Expected())
    if finding.stage is Stage.UPDATE:
        built = optimizer_trial(finding, context)
    else:
        built = layer_trial(finding, context, own_gradients)
    if isinstance(built, str):
        return _Prepared(finding, calls, None, Expected(), built)
    if not _proves(built[0]):
        drawn = _drawn(built[0], context, finding, run)
        if drawn is None:
            return _Prepared(finding, calls, None, Expected(), _ALIKE)
        built = drawn
    return _Prepared(finding, calls, *built)


def _with_outcomes(prepared: _Prepared, results: Sequence[TrialResult] | None) -> Finding:
    """The finding with an outcome at each candidate that has a line, what works first."""
    outcomes = iter(results or ())
    told = []
    for candidate, call in zip(prepared.finding.candidates, prepared.calls, strict=True):
        if call is None:
            told.append(candidate)
            continue
        if prepared.base is None or results is None:
            words = prepared.words or "not tried: MindSpore is not installed here"
            outcome = TrialOutcome(None, words=words)
        else:
            result = next(outcomes)
            # An optimizer is judged by what it changes: beside the parameters a step is small.
            own = changes(result, prepared.base) if prepared.base.layer is None else result
            outcome = judged_result(own, prepared.expected, prepared.base)
        told.append(replace(candidate, trial=outcome))
    return replace(prepared.finding, candidates=tuple(sorted(told, key=_rank)))


def changes(result: TrialResult, trial: Trial) -> TrialResult:
    """The result with parameters replaced by how far the step moved them."""
    values = {n: array - trial.values[n] for n, array in result.values.items() if n in trial.values}
    return replace(result, values=values)


_ALIKE = (
    "not tried: its inputs in the dump are all alike, and the original is not here to try others"
)


def judged_result(result: TrialResult, expected: Expected, trial: Trial) -> TrialOutcome:
    """How near a trial came to the reference."""
    allowed = expected.allowed
    if result.error:
        return TrialOutcome(False, allowed=allowed, words=f"does not run: {result.error}")
    forward = _apart(_shared(expected.outputs, result.outputs))
    lacks = [slot for slot in expected.outputs if slot not in result.outputs]
    if lacks:
        words = f"gives no output {', '.join(lacks)}" if any(lacks) else "gives several outputs"
        return TrialOutcome(False, allowed=allowed, words=words)
    state = _apart(_shared(expected.values, result.values))
    inner = _shared(expected.gradients, result.gradients)
    outer = _shared(expected.grad_inputs, result.grad_inputs)
    words = expected.words
    # A gradient of an input that others use as well is more than this layer's share.
    if expected.shared_inputs and not all(_near(pair, trial) for pair in outer):
        words = f"{words}; " if words else ""
        words += "gradient of its input not told: in the dump it may be a sum over several users"
        outer = []
    backward = _apart(inner + outer)
    near = [n <= allowed for n in (forward, state) if n is not None]
    near += [_near(pair, trial) for pair in inner + outer]
    works = all(near) if near else None
    return TrialOutcome(works, forward, backward, state, allowed, words)


def _near(pair: tuple[Array, Array], trial: Trial) -> bool:
    """Whether a gradient is the reference's within the rounding of the terms that make it."""
    allowed = gradient_rounding(pair[0], trial.grad_outputs.values(), trial.inputs.values())
    return relative_error(*pair) <= allowed


_ALIKE = (
    "not tried: its inputs in the dump are all alike, and the original is not here to try others"
)


def _rank(candidate: Candidate) -> tuple[int, float]:
    trial = candidate.trial
    if trial is None or trial.works is None:
        return 1, 0.0
    far = max((n for n in (trial.forward, trial.backward, trial.state) if n is not None), default=0)
    return (0, 0.0) if trial.works else (2, far)


def _proves(trial: Trial) -> bool:
    """Whether the float inputs, or for an optimizer the gradients, are not all alike."""
    tensors = list(trial.gradients.values()) if trial.layer is None else list(trial.inputs.values())
    floats = [one for one in tensors if one.dtype.kind == "f" and one.size > 1]
    if not floats:
        # An embedding is given whole numbers.
        return True
    finite = [one for one in floats if np.isfinite(one).all()]
    return any(float(one.max()) > float(one.min()) for one in finite)


def _drawn(
    trial: Trial, context: Context, finding: Finding, run: Runner
) -> tuple[Trial, Expected] | None:
    """The trial on drawn tensors of the same shapes and dtypes, with what the original gives on them."""
    reference = context.owner(finding.place)
    if trial.layer is None or reference is None or flavour_of(reference) != "torch":
        return None
    call = call_of(layer_code(reference), "torch")
    if call is None:
        return None
    source = np.random.default_rng(0)

    def like(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        return source.standard_normal(array.shape).astype(array.dtype)

    inputs = {slot: like(array) for slot, array in trial.inputs.items()}
    given = {slot: like(array) for slot, array in trial.grad_outputs.items()}
    told = replace(trial, call=call, inputs=inputs, grad_outputs=given)
    results = run("torch", [told])
    if len(results) != 1 or results[0].error:
        return None
    own = results[0]
    states = {p.name for p in trial.parameters if p.buffer}
    after = {name: array for name, array in own.values.items() if name in states}
    words = "tried on drawn inputs: those in the dump are all alike"
    near = rounding(str(one.dtype) for one in own.outputs.values())
    made = (own.outputs, own.grad_inputs, own.gradients, after)
    return told, Expected(*made, near, False, words)


def _shared(
    expected: Mapping[str, Array], result: Mapping[str, Array]
) -> list[tuple[Array, Array]]:
    return [(expected[n], result[n]) for n in expected if n in result]


def _apart(pairs: Iterable[tuple[Array, Array]]) -> float | None:
    """The largest ‖x - r‖ / ‖r‖, inf for another shape or what is finite on one side alone."""
    worst: float | None = None
    for mine, yours in pairs:
        worst = max(worst or 0.0, relative_error(mine, yours))
    return worst


def relative_error(mine: Array, yours: Array) -> float:
    """‖yours - mine‖ / ‖mine‖; inf for another shape, and what is finite on one side alone."""
    if mine.shape != yours.shape:
        # A lone number may come as a tensor of one element.
        if mine.size != 1 or yours.size != 1:
            return float("inf")
        mine, yours = mine.reshape(()), yours.reshape(())
    a, b = (np.asarray(one, np.float64) for one in (mine, yours))
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return float("inf")
    a, b = a[finite], b[finite]
    norm, apart = float(np.linalg.norm(a)), float(np.linalg.norm(b - a))
    return apart / norm if norm else (0.0 if not apart else float("inf"))
