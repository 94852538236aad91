"""Causes of backward findings: cut, doubled, scaled or lost gradients, told by the values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from paritydbg.explain.causes.branches import branch_causes
from paritydbg.explain.causes.derivatives import derivative_causes
from paritydbg.explain.causes.embeddings import row_causes
from paritydbg.explain.causes.forms import percent
from paritydbg.explain.causes.norm_derivatives import norm_derivative_causes
from paritydbg.explain.causes.singularities import singularity_causes
from paritydbg.explain.causes.site import LEFT, gap_of
from paritydbg.explain.causes.wiring import fitted_factor, named_factor
from paritydbg.explain.context import Context, Floats, Sides
from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Phase, Role
from paritydbg.model.finding import Cause, Finding, Stage

_GRADIENTS = (Role.GRAD_OUTPUT, Role.GRAD_INPUT, Role.GRAD)


def backward_causes(finding: Finding, context: Context) -> Iterable[Cause]:
    """What the gradients at the place tell."""
    if finding.stage is not Stage.BACKWARD:
        return
    evidence = finding.evidence
    if evidence is None:
        yield from _one_sided(finding, context)
        return
    sides = context.sides(evidence.pair)
    if sides is None:
        return
    if evidence.verdict is Verdict.NONFINITE:
        yield from singularity_causes(finding, context, sides)
        return
    gap = gap_of(sides)
    if not gap:
        return
    emptied = tuple(_emptied(finding, sides, context))
    yield from emptied
    if emptied:
        return
    own = (
        *derivative_causes(finding, context, sides),
        *norm_derivative_causes(finding, context, sides),
    )
    yield from own
    if own:
        return
    yield from branch_causes(finding, context, sides, gap)
    yield from _ratio(finding, context, sides, gap)
    yield from row_causes(finding, context, sides)
    yield from _own_backward(finding, context, sides)


def _one_sided(finding: Finding, context: Context) -> Iterator[Cause]:
    """A gradient that one side has and the other has not."""
    if finding.verdict is Verdict.UNPAIRED:
        yield Cause(
            "stop-gradient-missing",
            "the reference cuts the gradient here (detach, no_grad, requires_grad), the port "
            "does not: put ops.stop_gradient there, or freeze the parameter",
            f"{finding.port_place or finding.place} has a gradient in the port alone",
            0.85,
        )
        return
    record = context.port_parameter(finding.port_place) or next(
        (
            found
            for name in context.partners_of_parameter(finding.place)
            if (found := context.port_parameter(name)) is not None
        ),
        None,
    )
    if record is not None and not record.trainable:
        yield Cause(
            "parameter-frozen",
            "the port's parameter has requires_grad=False",
            f"{record.name} is not trainable in the port",
            0.93,
        )
        return
    yield Cause(
        "stop-gradient-extra",
        "something in the port cuts the gradient between here and the loss: stop_gradient, asnumpy, "
        "a cast to whole numbers, or a constant made of a tensor",
        f"forward values agree, and no gradient of "
        f"{finding.place.removeprefix('after ')} arrives in the port",
        0.85,
    )


def _emptied(finding: Finding, sides: Sides, context: Context) -> Iterator[Cause]:
    """All zero on one side alone."""
    zero = not sides.reference.any(), not sides.port.any()
    if zero == (False, True):
        parameter = context.parameter(finding.place)
        names = context.partners_of_parameter(finding.place)
        trainable = all(
            record.trainable for n in names if (record := context.port_parameter(n)) is not None
        )
        if parameter is not None and not trainable:
            yield Cause(
                "parameter-frozen",
                "the port's parameter has requires_grad=False",
                f"gradient norm: reference {np.linalg.norm(sides.reference):.3g}, port 0",
                0.9,
            )
            return
        yield Cause(
            "stop-gradient-extra",
            "something in the port cuts the gradient between here and the loss",
            f"gradient norm: reference {np.linalg.norm(sides.reference):.3g}, port 0",
            0.9,
        )
    elif zero == (True, False):
        yield Cause(
            "stop-gradient-missing",
            "the reference cuts the gradient here (detach, no_grad), the port does not",
            f"gradient norm: reference 0, port {np.linalg.norm(sides.port):.3g}",
            0.9,
        )


def _ratio(finding: Finding, context: Context, sides: Sides, gap: float) -> Iterator[Cause]:
    """The port's gradient is the reference's times a number."""
    scale = fitted_factor(sides.reference, sides.port)
    if scale is None:
        return
    left = float(np.linalg.norm(sides.port - scale * sides.reference)) / gap
    if left > LEFT:
        return
    named = named_factor(scale, sides.port.shape)
    evidence = f"port = {scale:.7g} · reference ({percent(left)} of the difference left)"
    ratios = _ratios(context, finding.step)
    everywhere = len(ratios) > 1 and all(math.isclose(r, scale, rel_tol=0.01) for r in ratios)
    key = finding.evidence.pair.first.key if finding.evidence is not None else None
    at_loss = key is not None and key.role is Role.GRAD_OUTPUT and key.name == ""
    if math.isclose(scale, 2.0, rel_tol=1e-3):
        yield Cause(
            "gradient-accumulated-twice",
            "the port's gradient is twice the reference's: a path or a backward pass counts twice",
            evidence,
            0.85,
        )
    elif everywhere or at_loss:
        yield Cause(
            "gradient-scaled",
            f"every gradient of the port is {named} times the reference's: a loss scale (sens) or "
            "a division that one side lacks",
            evidence,
            0.85,
        )
    else:
        yield Cause(
            "gradient-scaled",
            f"the port's gradient here is {named} times the reference's",
            evidence,
            0.55,
        )


def _ratios(context: Context, step: int) -> list[float]:
    """The factors of all parameters' gradients in a step."""
    return [
        c.metrics.ratio
        for c in context.of_role(Role.GRAD, step)
        if c.metrics is not None and c.metrics.reference_l2
    ]


def _own_backward(finding: Finding, context: Context, sides: Sides) -> Iterator[Cause]:
    """Nothing else fits, values agree forwards: the place's own backward is wrong."""
    if not _forward_agrees(finding, context):
        return
    same_sum = _moved(sides.reference, sides.port)
    if same_sum:
        yield Cause(
            "max-tie-subgradient",
            "the same gradient goes to other elements: where several share the maximum, the two "
            "sides choose another",
            f"sums agree to {same_sum:.1e} while single elements do not",
            0.6,
        )
    reference = context.owner(finding.place)
    leaf = reference is not None and reference.leaf
    yield Cause(
        "custom-bprop-wrong",
        "forward values agree and the gradient that arrives agrees, so the backward calculation "
        "of this place itself is another one: look for a bprop or an autograd function of its own",
        f"‖port‖ / ‖reference‖ = {_share(sides):.4g}, cosine {_cosine(sides):.6f}",
        0.7 if leaf and not finding.place.startswith(("after ", "before ")) else 0.6,
    )


def _moved(reference: Floats, port: Floats) -> float:
    """How well sums agree per sample and channel where elements merely changed places; 0 if they do not."""
    if reference.ndim < 3:
        return 0.0
    axes = tuple(range(2, reference.ndim))
    mine, yours = reference.sum(axis=axes), port.sum(axis=axes)
    size = float(np.linalg.norm(mine))
    off = float(np.linalg.norm(mine - yours)) / size if size else 1.0
    counts = np.count_nonzero(reference), np.count_nonzero(port)
    return max(off, 1e-16) if off < 1e-5 and counts[0] == counts[1] < reference.size else 0.0


def _forward_agrees(finding: Finding, context: Context) -> bool:
    """Whether nothing of the finding's layer differed on the way forward in that step."""
    owner = context.owner(finding.place)
    if owner is None:
        return True
    return not any(
        c.verdict in (Verdict.DIVERGED, Verdict.SHAPE, Verdict.NONFINITE)
        for c in context.comparisons_of(owner.name, step=finding.step)
        if c.pair.first.key.phase is Phase.FORWARD and c.pair.first.key.role is Role.OUTPUT
    )


def _share(sides: Sides) -> float:
    size = float(np.linalg.norm(sides.reference))
    return float(np.linalg.norm(sides.port)) / size if size else math.inf


def _cosine(sides: Sides) -> float:
    sizes = float(np.linalg.norm(sides.reference)) * float(np.linalg.norm(sides.port))
    return float(np.vdot(sides.reference, sides.port)) / sizes if sizes else math.nan
