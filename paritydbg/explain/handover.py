"""Makes a finding's reproduction: both frameworks' layers run on the same tensors, apart from the nets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from paritydbg.errors import UsageError
from paritydbg.explain.code_lines import call_of
from paritydbg.explain.context import Context
from paritydbg.explain.layer_code import layer_code
from paritydbg.explain.optimizer_lines import optimizer_line
from paritydbg.explain.trial_inputs import Expected, layer_trial, optimizer_trial
from paritydbg.explain.trials import Runner, changes, relative_error
from paritydbg.measure.layer_noise import gradient_rounding
from paritydbg.model.finding import Finding, Stage
from paritydbg.model.handover import Handover, HandoverSide
from paritydbg.model.pair import ParameterPair
from paritydbg.model.trial import Array, Call, Trial, TrialResult

# How often tensors are drawn before it is said that drawn ones do not show the difference.
_DRAWS = 4


def handover(
    finding: Finding,
    context: Context,
    run: Runner,
    *,
    own_gradients: bool = False,
    anonymous: bool = False,
) -> Handover:
    """The finding's layer or optimizer, run alone in both frameworks on the captured tensors.

    Args:
        finding: of a report on the context's runs.
        run: runs trials. MindSpore must be installed; what torch gives is taken from the dump where it
            is not, unless tensors are drawn.
        own_gradients: whether gradients of inputs in the context are each layer's own share.
        anonymous: whether to draw other tensors of the same spread in place of the captured ones.

    Raises:
        UsageError: why it cannot be reproduced alone, and what to do instead.
    """
    built, lines, parameters = _parts(finding, context, own_gradients)
    calls = [_call(line, package) for line, package in zip(lines, _PACKAGES, strict=True)]
    base, expected = built
    draws = range(_DRAWS) if anonymous else (None,)
    for draw in draws:
        trial = base if draw is None else _drawn(base, draw)
        yours = _ran(run, "mindspore", replace(trial, call=calls[1]), None)
        # Without torch, what it gave on the captured tensors is in the dump.
        there = _in_dump(expected) if draw is None else None
        mine = _ran(run, "torch", replace(trial, call=calls[0]), there)
        errors = _errors(trial, mine, yours, expected.allowed)
        if any(error > limit for _, error, limit in errors):
            return _handed(
                finding,
                context,
                trial,
                lines,
                parameters,
                (mine, yours),
                expected,
                errors,
                anonymous,
            )
    worst = max((error for _, error, _ in errors), default=0.0)
    drawn = "drawn tensors do" if anonymous else "on the captured tensors it does"
    advice = (
        "try without --anonymise"
        if anonymous
        else "it lies in how the net uses it: see the report's cause"
    )
    raise UsageError(
        f"{finding.place} alone cannot show the difference: {drawn} not (relative error {worst:.1e}); "
        f"{advice}"
    )


_PACKAGES = ("torch", "mindspore")
_Built = tuple[Trial, Expected]
_Pairs = tuple[ParameterPair, ...]


def _parts(
    finding: Finding, context: Context, own_gradients: bool
) -> tuple[_Built, tuple[str, str], _Pairs]:
    """What is run, the two lines of code, and whose parameters stand for whose (names within the layer)."""
    if finding.stage is Stage.UPDATE:
        built = optimizer_trial(finding, context)
        runs = context.reference.run, context.port.run
        found = tuple(optimizer_line(one.optimizers[0]) if one.optimizers else "" for one in runs)
        lines, pairs = (found[0], found[1]), tuple(context.alignment.parameters)
    else:
        built = layer_trial(finding, context, own_gradients)
        reference, port = context.layers_of(finding)
        if reference is None or port is None:
            raise UsageError(
                f"{finding.place} is no layer of both sides, and only layers and optimizers are "
                "reproduced alone; see the report for its lines of evidence"
            )
        lines = layer_code(reference), layer_code(port, reference)
        for line, record in zip(lines, (reference, port), strict=True):
            if not line:
                raise UsageError(
                    f"{finding.place} cannot be reproduced alone: {record.api} is no layer of its "
                    "framework whose settings the dump tells; its code is needed"
                )
        pairs = tuple(_within(context.alignment.parameters, reference.name, port.name))
    if isinstance(built, str):
        raise UsageError(
            f"{finding.place} cannot be reproduced alone: {built.removeprefix('not tried: ')}"
        )
    if not all(lines):
        raise UsageError(
            f"{finding.place} cannot be reproduced alone: the dump does not tell how an optimizer was made"
        )
    return built, lines, pairs


def _within(pairs: Iterable[ParameterPair], reference: str, port: str) -> Iterable[ParameterPair]:
    """The pairs of two layers' parameters, by their names within them."""
    for pair in pairs:
        mine = [_inside(name, reference) for name in pair.reference]
        yours = [_inside(name, port) for name in pair.port]
        if all(mine) and all(yours):
            yield replace(pair, reference=tuple(mine), port=tuple(yours))


def _inside(name: str, layer: str) -> str:
    if not layer:
        return name
    return name[len(layer) + 1 :] if name.startswith(f"{layer}.") else ""


def _call(line: str, package: str) -> Call:
    call = call_of(line, package)
    if call is None:
        raise UsageError(f"{line} cannot be read back as a call of plain values")
    return call


def _in_dump(expected: Expected) -> TrialResult:
    grad_inputs = {} if expected.shared_inputs else expected.grad_inputs
    return TrialResult(expected.outputs, grad_inputs, expected.gradients, expected.values)


def _ran(run: Runner, package: str, trial: Trial, there: TrialResult | None) -> TrialResult:
    results = run(package, [trial])
    if not results and there is not None:
        return there
    if not results:
        raise UsageError(
            f"a reproduction is tried before it is written, and {package} is not installed here: "
            f"pip install 'paritydbg[{package}]'"
        )
    if results[0].error:
        raise UsageError(f"{trial.call.api} does not run alone: {results[0].error}")
    return changes(results[0], trial) if trial.layer is None else results[0]


def _errors(
    trial: Trial, mine: TrialResult, yours: TrialResult, allowed: float
) -> tuple[tuple[str, float, float], ...]:
    """The port against the reference, everything that both gave: what, how far, how far is allowed."""
    found: list[tuple[str, float, float]] = []
    states = {p.name for p in trial.parameters if p.buffer} if trial.layer else set(trial.values)
    for what, field in _KINDS:
        left, right = getattr(mine, field), getattr(yours, field)
        for name in left:
            if name in right and (field != "values" or name in states):
                label = f"{what} {name}".strip() if what else name
                limit = allowed
                if field in ("grad_inputs", "gradients"):
                    given = trial.grad_outputs.values(), trial.inputs.values()
                    limit = gradient_rounding(left[name], *given)
                found.append((label, relative_error(left[name], right[name]), limit))
    return tuple(found)


_KINDS = (
    ("output", "outputs"),
    ("gradient of input", "grad_inputs"),
    ("gradient of", "gradients"),
    ("after the step:", "values"),
)


def _drawn(trial: Trial, seed: int) -> Trial:
    """The trial on drawn tensors with the mean and the spread of the captured ones."""
    source = np.random.default_rng(seed)

    def like(array: Array) -> Array:
        if array.dtype.kind in "iu" and array.size:
            return source.integers(
                array.min(), array.max(), array.shape, array.dtype, endpoint=True
            )
        if array.dtype.kind != "f":
            return array
        finite = array[np.isfinite(array)].astype(np.float64)
        mean, spread = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 1.0)
        drawn = mean + (spread or 1.0) * source.standard_normal(array.shape)
        # A variance stays one.
        lowest = float(finite.min()) if finite.size else -np.inf
        return (np.abs(drawn) if lowest >= 0 else drawn).astype(array.dtype)

    def all_like(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {name: like(np.asarray(array)) for name, array in arrays.items()}

    return replace(
        trial,
        values=all_like(trial.values),
        inputs=all_like(trial.inputs),
        grad_outputs=all_like(trial.grad_outputs),
        gradients=all_like(trial.gradients),
    )


def _handed(
    finding: Finding,
    context: Context,
    trial: Trial,
    lines: tuple[str, str],
    pairs: Sequence[ParameterPair],
    results: tuple[TrialResult, TrialResult],
    expected: Expected,
    errors: tuple[tuple[str, float, float], ...],
    anonymous: bool,
) -> Handover:
    mine, yours = results
    environments = context.reference.run.environment, context.port.run.environment
    reference = HandoverSide(environments[0], lines[0], trial.values, trial.gradients, yours, mine)
    port = HandoverSide(
        environments[1],
        lines[1],
        _there(pairs, trial.values),
        _there(pairs, trial.gradients),
        replace(mine, gradients=_there(pairs, mine.gradients), values=_there(pairs, mine.values)),
        replace(
            yours, gradients=_there(pairs, yours.gradients), values=_there(pairs, yours.values)
        ),
    )
    return Handover(finding, trial, reference, port, expected.allowed, errors, anonymous)


def _there(pairs: Sequence[ParameterPair], values: Mapping[str, Array]) -> dict[str, Array]:
    """The reference's tensors in the port's names and layout."""
    found: dict[str, Array] = {}
    for pair in pairs:
        if all(name in values for name in pair.reference):
            arrays = pair.transform.apply([np.asarray(values[name]) for name in pair.reference])
            found.update(zip(pair.port, arrays, strict=True))
    return found
