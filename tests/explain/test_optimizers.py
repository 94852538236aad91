"""Differences of optimizers' settings: names of both frameworks, groups, and who decays."""

from __future__ import annotations

from typing import Any

from paritydbg.explain.optimizers import hyper_parameters, optimizer_differences
from paritydbg.model.record import OptimizerRecord


def record(kind: str, *groups: dict[str, Any], parameters: tuple[tuple[str, ...], ...] = ()) -> Any:
    named = parameters or tuple((f"p{number}",) for number in range(len(groups)))
    settings = tuple(tuple(sorted(group.items())) for group in groups)
    return OptimizerRecord(kind, f"some.{kind}", settings, named)


def test_the_same_settings_under_other_names_are_no_difference() -> None:
    torch = record("Adam", {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False})
    port = record(
        "Adam",
        {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "use_amsgrad": False},
    )
    assert optimizer_differences(torch, port) == ()


def test_a_setting_that_one_side_never_mentions_counts_as_its_usual_value() -> None:
    torch = record("SGD", {"lr": 0.1, "nesterov": False, "dampening": 0, "momentum": 0.9})
    assert optimizer_differences(torch, record("Momentum", {"lr": 0.1, "momentum": 0.9})) == ()
    decaying = record("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4})
    (found,) = optimizer_differences(decaying, record("SGD", {"lr": 0.1, "momentum": 0.9}))
    assert (found.name, found.reference, found.port) == ("weight_decay", 1e-4, 0.0)
    assert found.cause == "weight-decay-missing"


def test_differences_bear_the_ports_own_name_and_what_it_should_have() -> None:
    torch = record("RMSprop", {"lr": 0.01, "alpha": 0.99})
    port = record("RMSProp", {"learning_rate": 0.1, "decay": 0.9})
    found = {one.name: one for one in optimizer_differences(torch, port)}
    assert found["lr"].port_name == "learning_rate"
    assert found["lr"].expected == 0.01
    assert found["alpha"].port_name == "decay"
    assert found["alpha"].changes == "update"


def test_rates_that_passed_through_float32_are_the_same() -> None:
    assert not optimizer_differences(
        record("SGD", {"lr": 0.1}), record("SGD", {"lr": 0.10000000149011612})
    )


def test_betas_are_compared_as_a_pair_whoever_spells_them() -> None:
    torch = record("AdamW", {"lr": 0.1, "betas": (0.9, 0.95)})
    port = record("AdamWeightDecay", {"lr": 0.1, "beta1": 0.9, "beta2": 0.999})
    (found,) = optimizer_differences(torch, port)
    assert (found.port, found.port_name) == ((0.9, 0.999), "beta1, beta2")
    assert hyper_parameters(port)["betas"].value == (0.9, 0.999)


def test_parameters_that_decay_on_one_side_alone_are_listed() -> None:
    torch = record(
        "AdamW",
        {"weight_decay": 0.01},
        {"weight_decay": 0.0},
        parameters=(("fc.weight",), ("fc.bias", "norm.weight")),
    )
    port = record(
        "AdamW",
        {"weight_decay": 0.01},
        parameters=(("fc.weight", "fc.bias", "norm.gamma"),),
    )
    partners = {"fc.weight": "fc.weight", "fc.bias": "fc.bias", "norm.weight": "norm.gamma"}
    found = {one.cause: one for one in optimizer_differences(torch, port, partners)}
    assert "fc.bias, norm.weight" in str(found["weight-decay-groups"].reference)


def test_groups_are_compared_by_the_parameters_that_they_share() -> None:
    torch = record("SGD", {"lr": 0.1}, {"lr": 0.2}, parameters=(("a",), ("b",)))
    port = record("SGD", {"lr": 0.2}, {"lr": 0.1}, parameters=(("b",), ("a",)))
    assert optimizer_differences(torch, port, {"a": "a", "b": "b"}) == ()
    assert optimizer_differences(torch, port)[0].name == "lr"
