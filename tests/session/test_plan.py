"""What a capture takes: steps, layers, roles."""

from __future__ import annotations

import pytest

from paritydbg.errors import UsageError
from paritydbg.model.event import Role
from paritydbg.session.plan import CapturePlan, StepChoice, parse_roles


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3", [3], [2, 4]), ("1-3", [1, 3], [4]), ("2-", [2, 900], [1]), ("-2", [1, 2], [3])],
)
def test_a_range_of_steps_is_read(text: str, inside: list[int], outside: list[int]) -> None:
    choice = StepChoice.parse(text)
    assert all(step in choice for step in inside)
    assert not any(step in choice for step in outside)


@pytest.mark.parametrize("text", ["", "0", "3-1", "a", "1-2-3", "-", "1,2"])
def test_a_wrong_range_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(UsageError, match="write 3, 1-3 or 2-"):
        StepChoice.parse(text)


def test_layers_are_chosen_by_pattern_and_the_net_itself_always() -> None:
    plan = CapturePlan(layers=("encoder.*",))
    assert plan.takes(Role.OUTPUT, "encoder.fc")
    assert plan.takes(Role.OUTPUT, "")
    assert not plan.takes(Role.OUTPUT, "head")
    assert plan.takes(Role.LOSS, "loss")


def test_roles_are_chosen_by_name() -> None:
    plan = CapturePlan(roles=parse_roles(("output", "grad")))
    assert plan.takes(Role.GRAD, "fc")
    assert not plan.takes(Role.INPUT, "fc")


def test_an_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="'outputs' is unknown; choose from input, output"):
        parse_roles(("outputs",))
