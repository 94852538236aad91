"""Variants of an optimizer's rule that ports are known to follow instead, each with its cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from paritydbg.explain.causes.update_rules import Rule


@dataclass(frozen=True)
class Variant:
    """A rule that the port may follow.

    Attributes:
        slugs: the causes that it stands for; none where the rule is what the port was told.
        words: what the port does, for a person.
        rule: with all numbers.
    """

    slugs: tuple[str, ...]
    words: str
    rule: Rule


def variants(told: Rule, wanted: Rule) -> Iterator[Variant]:
    """The rule that the port was told, then every single change of it, then pairs of changes.

    Args:
        told: by the port's own record, else the reference's.
        wanted: the reference's rule.
    """
    yield Variant((), "does what it was told", told)
    single = tuple(_single(told, wanted))
    yield from single
    for number, one in enumerate(single):
        for other in _single(one.rule, wanted):
            if other.slugs[0] not in {*one.slugs, *(s.slugs[0] for s in single[:number])}:
                yield Variant(
                    (*one.slugs, *other.slugs), f"{one.words}, and {other.words}", other.rule
                )


def _single(rule: Rule, wanted: Rule) -> Iterator[Variant]:
    yield from {"adam": _adam, "sgd": _sgd, "rmsprop": _rmsprop}[rule.kind](rule, wanted)
    yield from _decay(rule, wanted)


def _adam(rule: Rule, wanted: Rule) -> Iterator[Variant]:
    if rule.corrected:
        yield Variant(
            ("adam-bias-correction-missing",),
            "leaves out the bias correction, as mindspore.nn.AdamWeightDecay does, which makes the "
            "first steps too large",
            replace(rule, corrected=False),
        )
    for place, words in (
        ("uncorrected", "adds eps to the root of the uncorrected average"),
        ("inside", "adds eps under the root"),
    ):
        if rule.eps_place != place:
            moved = replace(rule, eps_place=place)  # type: ignore[arg-type]
            yield Variant(("adam-eps-placement",), words, moved)
    if rule.weight_decay or wanted.weight_decay:
        decay = rule.weight_decay or wanted.weight_decay
        how = "joins the decay to the gradient (L2)" if rule.decoupled else "decays directly"
        yield Variant(
            ("adamw-vs-l2-adam",),
            how,
            replace(rule, decoupled=not rule.decoupled, weight_decay=decay),
        )
    if not rule.second_start:
        yield _state_init(rule)


def _sgd(rule: Rule, wanted: Rule) -> Iterator[Variant]:
    momentum = rule.momentum or wanted.momentum
    if rule.nesterov or wanted.nesterov:
        words = "ignores nesterov" if rule.nesterov else "applies nesterov"
        yield Variant(
            ("nesterov-ignored",),
            words,
            replace(rule, nesterov=not rule.nesterov, momentum=momentum),
        )
    if rule.dampening or wanted.dampening:
        dampening = rule.dampening or wanted.dampening
        yield Variant(
            ("dampening",),
            "dampens the first step too",
            replace(rule, dampening=dampening, first_dampened=True),
        )
        yield Variant(("dampening",), "does not dampen", replace(rule, dampening=0.0))
    if momentum:
        yield Variant(
            ("momentum-convention",),
            "takes the momentum as a running mean: (1 - momentum) times the gradient",
            replace(rule, averaged=True, momentum=momentum),
        )
        yield Variant(
            ("momentum-convention",),
            f"works with a momentum of {1 - momentum:.4g} for {momentum:.4g}",
            replace(rule, momentum=1 - momentum),
        )
        yield Variant(("momentum-missing",), "works without momentum", replace(rule, momentum=0.0))


def _rmsprop(rule: Rule, wanted: Rule) -> Iterator[Variant]:
    if rule.eps_place != "inside":
        yield Variant(
            ("rmsprop-eps-inside-sqrt",),
            "adds epsilon under the root, √(average + eps), where torch adds it to the root",
            replace(rule, eps_place="inside"),
        )
    if not rule.second_start:
        yield _state_init(rule)
    if rule.centered != wanted.centered or rule.centered:
        yield Variant(
            ("rmsprop-centered",), "centres differently", replace(rule, centered=not rule.centered)
        )


def _state_init(rule: Rule) -> Variant:
    return Variant(
        ("optimizer-state-init",),
        "starts the square average at 1, not at 0",
        replace(rule, second_start=1.0),
    )


def _decay(rule: Rule, wanted: Rule) -> Iterator[Variant]:
    if rule.weight_decay:
        yield Variant(("weight-decay-missing",), "does not decay", replace(rule, weight_decay=0.0))
