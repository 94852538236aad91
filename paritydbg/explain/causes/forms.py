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
        theirs = _fitting(site, source, forms, weights[1], of_port=True)
        if not theirs:
            continue
        mine = _fitting(site, source, forms, weights[0], of_port=False)
        if mine:
            (one, left), (other, port_left) = min(
                ((a, b) for a in mine for b in theirs),
                key=lambda pair: _apart(pair[0][0], pair[1][0]),
            )
            if one is not other:
                yield Recognised(one, other, left, port_left, source)


def _apart(one: Form, other: Form) -> int:
    """How much two forms differ: of those that cannot be told apart by values the nearest count."""
    changed = sum(one.settings.get(name) != value for name, value in other.settings.items())
    return changed if one.kind == other.kind else 100


def percent(share: float) -> str:
    """A share in words; tiny ones are not written out."""
    return f"{share:.1%}" if share >= 0.001 else "less than 0.1%"


def _fitting(
    site: Site, source: Source, forms: Sequence[Form], weights: Weights, of_port: bool
) -> list[tuple[Form, float]]:
    """The forms that leave least, and others that leave about as little, in their order."""
    found: list[tuple[Form, float]] = []
    values = source.port if of_port else source.reference
    for form in forms:
        sample = sampled(site, form.reach)
        picked = sample.pick(values)
        if picked is None:
            continue
        value = form.value(picked, sample.weights(weights))
        left = sample.site.left_of_port if of_port else sample.site.left_of_reference
        share = left(value)
        if share <= site.limit:
            found.append((form, share))
    least = min((share for _, share in found), default=0.0)
    return [(form, share) for form, share in found if share <= 1.25 * least + 1e-6]
