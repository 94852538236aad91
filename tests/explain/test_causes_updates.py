"""Causes of updates, learning rates and averages: the optimizer's rule is recalculated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paritydbg.explain.explain import explain
from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Role
from paritydbg.model.finding import Finding, Stage
from paritydbg.model.record import OptimizerRecord
from tests.explain.memory_run import MemoryRun, context_of, finding_of

RANDOM = np.random.default_rng(4)
START = {"fc.weight": RANDOM.standard_normal((3, 4)), "fc.bias": RANDOM.standard_normal(3)}
GRADIENTS = {n: RANDOM.standard_normal((2, *v.shape)) * 0.01 for n, v in START.items()}
Rule = Callable[[Any, Any], Any]


def optimizer(kind: str, package: str = "torch.optim", **told: Any) -> OptimizerRecord:
    return OptimizerRecord(
        kind, f"{package}.{kind}", (tuple(sorted(told.items())),), (tuple(START),)
    )


def step(
    reference: Rule,
    port: Rule,
    record: OptimizerRecord,
    port_record: OptimizerRecord | None = None,
    *,
    only: tuple[str, ...] = tuple(START),
) -> Finding:
    """One step in which each side adds to its parameters what its rule says of value and gradient."""
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, rule, told in zip(
        runs, (reference, port), (record, port_record or record), strict=True
    ):
        run.optimizers.append(told)
        for name, value in START.items():
            run.parameter(name, value)
            run.add(Role.GRAD_APPLIED, name, GRADIENTS[name][0])
        for name, value in START.items():
            moves = rule if name in only or run is runs[0] else reference
            changed = value + moves(value, GRADIENTS[name][0])
            run.add(Role.PARAMETER, name, changed, after=True)
    return explained(runs, only)


def explained(runs: tuple[MemoryRun, MemoryRun], names: tuple[str, ...], at: int = 1) -> Finding:
    context = context_of(*runs)
    after = [
        c
        for c in context.comparisons
        if c.pair.first.key.role is Role.PARAMETER and c.pair.first.key.phase.value == "update"
        if c.pair.first.key.step == at
    ]
    finding = Finding(
        Stage.UPDATE,
        Verdict.DIVERGED,
        f"step{at}",
        "",
        step=at,
        evidence=after[0],
        also=tuple(f"step{at}:{name}" for name in names),
    )
    return explain(finding, context)


def adam(eps: float = 1e-3, corrected: bool = True, inside: bool = False, l2: float = 0.0) -> Rule:
    def rule(value: Any, g: Any) -> Any:
        g = g + l2 * value
        m, v = 0.1 * g, 0.001 * g * g
        if corrected:
            m, v = m / 0.1, v / 0.001
        return -0.01 * m / (np.sqrt(v + eps) if inside else np.sqrt(v) + eps)

    return rule


ADAM = optimizer("AdamW", lr=0.01, betas=(0.9, 0.999), eps=1e-3, weight_decay=0.0)
DECAYING = optimizer("AdamW", lr=0.01, betas=(0.9, 0.999), eps=1e-3, weight_decay=0.1)
SGD = optimizer("SGD", lr=0.1, momentum=0.9, nesterov=True, dampening=0, weight_decay=0.0)
RMSPROP = optimizer("RMSprop", lr=0.01, alpha=0.9, eps=1e-3)


def decoupled(decay: float) -> Rule:
    return lambda value, g: adam()(value, g) - 0.01 * decay * value


RULES: dict[str, tuple[Rule, Rule, OptimizerRecord]] = {
    "adam-bias-correction-missing": (adam(), adam(corrected=False), ADAM),
    "adam-eps-placement": (adam(), adam(inside=True), ADAM),
    "adamw-vs-l2-adam": (decoupled(0.1), adam(l2=0.1), DECAYING),
    "weight-decay-missing": (decoupled(0.1), decoupled(0.0), DECAYING),
    "nesterov-ignored": (lambda _, g: -0.19 * g, lambda _, g: -0.1 * g, SGD),
    "rmsprop-eps-inside-sqrt": (
        lambda _, g: -0.01 * g / (np.sqrt(0.1 * g * g) + 1e-3),
        lambda _, g: -0.01 * g / np.sqrt(0.1 * g * g + 1e-3),
        RMSPROP,
    ),
    "optimizer-state-init": (
        lambda _, g: -0.01 * g / (np.sqrt(0.1 * g * g) + 1e-3),
        lambda _, g: -0.01 * g / (np.sqrt(0.9 + 0.1 * g * g) + 1e-3),
        RMSPROP,
    ),
    "optimizer-step-is-noop": (adam(), lambda value, _: 0 * value, ADAM),
}


@pytest.mark.parametrize("slug", RULES)
def test_the_rule_that_the_port_followed_is_found(slug: str) -> None:
    assert step(*RULES[slug]).causes[0].slug == slug


def test_decay_that_some_parameters_lack_is_told_from_no_decay_at_all() -> None:
    found = step(decoupled(0.1), decoupled(0.0), DECAYING, only=("fc.bias",))
    assert found.causes[0].slug == "weight-decay-groups"


def test_a_port_that_does_what_it_was_told_has_other_settings() -> None:
    told = optimizer("AdamW", "mindspore.experimental.optim", lr=0.01, eps=1e-8, betas=(0.9, 0.999))
    found = step(adam(eps=1e-2), adam(eps=1e-8), optimizer("AdamW", lr=0.01, eps=1e-2), told)
    assert found.causes[0].slug == "optimizer-eps"
    assert found.attributes[0].expected == 1e-2


def test_a_rule_that_nothing_explains_gets_no_named_variant() -> None:
    found = step(adam(), lambda value, g: 0.05 * np.sin(40 * value) + g, ADAM)
    assert found.causes == ()


def test_parameters_that_stop_moving_belong_to_an_optimizer_of_other_tensors() -> None:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run in runs:
        run.optimizers.append(SGD)
        value = START["fc.weight"]
        run.parameter("fc.weight", value)
        run.add(Role.PARAMETER, "fc.weight", value + 1, after=True)
        run.add(Role.PARAMETER, "fc.weight", value + 1, step=2)
        moved = value + 2 if run is runs[0] else value + 1
        run.add(Role.PARAMETER, "fc.weight", moved, step=2, after=True)
    assert explained(runs, ("fc.weight",), at=2).causes[0].slug == "set-data-detaches-optimizer"


def test_an_update_by_what_is_not_finite_that_the_other_side_skips_is_named() -> None:
    overflowed = step(lambda v, _: 0 * v, lambda v, _: np.inf + v, SGD)
    assert overflowed.causes[0].slug == "update-despite-overflow"


def rates(reference: list[float], port: list[float]) -> str:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, schedule in zip(runs, (reference, port), strict=True):
        run.optimizers.append(optimizer("SGD", lr=schedule[0]))
        for number, rate in enumerate(schedule, 1):
            run.add(Role.STATE, "lr", np.float64(rate), step=number)
        value, g = START["fc.weight"], GRADIENTS["fc.weight"][0]
        run.parameter("fc.weight", value)
        run.add(Role.GRAD_APPLIED, "fc.weight", g)
        run.add(Role.PARAMETER, "fc.weight", value - schedule[0] * g, after=True)
    return explained(runs, ("fc.weight",)).causes[0].slug


def test_a_schedule_one_step_off_is_told_from_one_without_warm_up() -> None:
    assert rates([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]) == "lr-schedule-off-by-one"
    assert rates([0.1, 0.2, 0.3], [0.3, 0.3, 0.3]) == "warmup-missing"


def given(reference: Rule, port: Rule) -> str:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, rule in zip(runs, (reference, port), strict=True):
        for number, (name, value) in enumerate(START.items(), 1):
            run.parameter(name, value)
            gradient = number * 10 * GRADIENTS[name][0]
            run.add(Role.GRAD, name, gradient)
            run.add(Role.GRAD_APPLIED, name, rule(number, gradient))
    context = context_of(*runs)
    finding = finding_of(context, Stage.UPDATE, "step1", Role.GRAD_APPLIED, name="fc.weight")
    return explain(finding, context).causes[0].slug


def test_clipping_each_tensor_is_told_from_clipping_all_together_and_from_none() -> None:
    def each(_: Any, g: Any) -> Any:
        return g / np.linalg.norm(g) * 0.1

    assert given(lambda _, g: 0.37 * g, each) == "clip-per-tensor-vs-global"
    assert given(lambda _, g: 0.37 * g, lambda _, g: g) == "clip-missing"


def test_a_loss_scale_that_is_not_taken_out_is_a_power_of_two() -> None:
    assert given(lambda _, g: g / 1024, lambda _, g: g) == "scale-not-removed"
    assert given(lambda _, g: g, lambda _, g: g / 1024) == "scale-removed-twice"


def test_a_mean_of_means_is_told_by_the_weights_of_the_micro_batches() -> None:
    parts = GRADIENTS["fc.weight"]
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    for run, weights in zip(runs, ((0.2, 0.8), (0.5, 0.5)), strict=True):
        run.parameter("fc.weight", START["fc.weight"])
        for micro, part in enumerate(parts):
            run.add(Role.GRAD, "fc.weight", part, micro=micro)
        joined = weights[0] * parts[0] + weights[1] * parts[1]
        run.add(Role.GRAD_APPLIED, "fc.weight", joined)
    context = context_of(*runs)
    place = "step1:fc.weight"
    finding = finding_of(context, Stage.UPDATE, place, Role.GRAD_APPLIED, name="fc.weight")
    assert explain(finding, context).causes[0].slug == "mean-of-means"


def average(decays: list[float], port: list[float]) -> str:
    runs = MemoryRun("torch"), MemoryRun("mindspore")
    path = START["fc.weight"] + np.cumsum(RANDOM.standard_normal((4, 3, 4)), axis=0)
    for run, used in zip(runs, (decays, port), strict=True):
        run.parameter("fc.weight", path[0])
        mean = path[0]
        for number, (value, decay) in enumerate(zip(path[1:], used, strict=True), 1):
            run.add(Role.PARAMETER, "fc.weight", value, step=number, after=True)
            mean = decay * mean + (1 - decay) * value
        run.add(Role.STATE, "ema", mean.astype(np.float32), step=3)
    context = context_of(*runs)
    finding = finding_of(context, Stage.STATE, "state:ema", Role.STATE, name="ema")
    return explain(finding, context).causes[0].slug


def test_the_decays_of_an_average_are_solved_from_its_value() -> None:
    assert average([0.9, 0.9, 0.9], [0.5, 0.5, 0.5]) == "ema-decay"
    assert average([0.2, 0.4, 0.6], [0.0, 0.0, 0.0]) == "ema-counter-integer"
    assert average([0.9, 0.9, 0.9], [1.0, 1.0, 1.0]) == "ema-not-updated"
