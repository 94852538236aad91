"""Named calculations that a layer may stand for, and which of them each side turned out to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from paritydbg.explain.causes.sampling import Reach, sampled
from paritydbg.explain.causes.site import Site, Source
from paritydbg.explain.context import Floats

Weights = Mapping[str, Floats]


@dataclass(frozen=True)
class Form:
    """A calculation in float64.

    Attributes:
        words: its name for a person: ``GELU (tanh form)``.
        kind: what it is a variant of: ``gelu``.
        value: input and the layer's parameters -> output, None where they do not fit.
        settings: what tells it from other variants: ``{"eps": 1e-5}``.
        reach: how far one element of the output looks, so that few of them may stand for all.
    """

    words: str
    kind: str
    value: Callable[[Floats, Weights], Floats | None]
    settings: Mapping[str, float | int | str] = field(default_factory=dict)
    reach: Reach = "all"


@dataclass(frozen=True)
class Recognised:
    """What both sides turned out to calculate.

    Attributes:
        reference, port: the forms.
        reference_left, port_left: shares of the gap that they leave.
        source: from which tensor.
    """

    reference: Form
    port: Form
    reference_left: float
    port_left: float
    source: Source

    @property
    def evidence(self) -> str:
        """How well the two forms meet the captured values."""
        return (
            f"recomputed in float64 from {self.source.words}: {self.reference.words} gives the "
            f"reference's values ({percent(self.reference_left)} of the difference left), "
            f"{self.port.words} the port's ({percent(self.port_left)} left)"
        )

    @property
    def confidence(self) -> float:
        """Surer the less is left, and surer from the layer's own input."""
        most = 0.97 if self.source.own else 0.93
        return round(most - 0.5 * max(self.reference_left, self.port_left), 3)


def recognise(
    site: Site,
    forms: Sequence[Form],
    weights: tuple[Weights, Weights] = ({}, {}),
) -> Iterator[Recognised]:
    """For each source from which both sides can be recomputed, the pair of forms that does it best."""
    for source in site.sources:
        theirs = _best(site, source, forms, weights[1], of_port=True)
        if theirs is None:
            continue
        mine = _best(site, source, forms, weights[0], of_port=False)
        if mine is not None and mine[0] is not theirs[0]:
            yield Recognised(mine[0], theirs[0], mine[1], theirs[1], source)


def percent(share: float) -> str:
    """A share in words; tiny ones are not written out."""
    return f"{share:.1%}" if share >= 0.001 else "less than 0.1%"


def _best(
    site: Site, source: Source, forms: Sequence[Form], weights: Weights, of_port: bool
) -> tuple[Form, float] | None:
    """The form that leaves least; the first of those that leave about the same."""
    found: tuple[Form, float] | None = None
    values = source.port if of_port else source.reference
    for form in forms:
        sample = sampled(site, form.reach)
        picked = sample.pick(values)
        if picked is None:
            continue
        value = form.value(picked, sample.weights(weights))
        left = sample.site.left_of_port if of_port else sample.site.left_of_reference
        share = left(value)
        # Forms that cannot be told apart here are taken in their order: the usual ones come first.
        if share <= site.limit and (found is None or share < 0.8 * found[1]):
            found = form, share
    return found
