"""The sequence pairs: clean ports agree with their references, and every mistake shows.

What a debugger answers for a mistake is not tested here, only that the mistake is really there.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import mindspore
import numpy as np
import pytest
import torch
from mindspore import Tensor

from sample_nets.fault import Fault

PAIRS = ("bert", "llama", "rnn")
RENAMED = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}
AGREES = 1e-4
"""Allowance on relative norms: clean runs stay under 2e-6 in gradients, 7e-5 in updates."""

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Run:
    """Losses by step; gradients and updates of the first step by the reference's names."""

    losses: tuple[float, ...]
    gradients: Arrays
    updates: Arrays


@pytest.fixture(autouse=True, scope="module")
def synchronous_mindspore() -> Iterator[None]:
    """MindSpore waits for each kernel meanwhile: on few cores its dispatch is ten times slower."""
    mindspore.set_context(pynative_synchronize=True)
    yield
    mindspore.set_context(pynative_synchronize=False)


def part(pair: str, name: str) -> ModuleType:
    return importlib.import_module(f"sample_nets.{pair}.{name}")


def faults(pair: str) -> tuple[Fault, ...]:
    declared: tuple[Fault, ...] = part(pair, "faults").FAULTS
    return declared


def reference_name(name: str) -> str:
    owner, dot, leaf = name.rpartition(".")
    return owner + dot + RENAMED.get(leaf, leaf)


@functools.cache
def reference(pair: str) -> torch.nn.Module:
    torch.manual_seed(0)
    net = part(pair, "torch_net").make_net()
    return net.train()


@functools.cache
def initial_weights(pair: str) -> Arrays:
    return {name: value.numpy().copy() for name, value in reference(pair).state_dict().items()}


@functools.cache
def reference_run(pair: str) -> Run:
    weights = initial_weights(pair)
    net, module, data = reference(pair), part(pair, "torch_net"), part(pair, "data")
    optimizer = module.make_optimizer(net)
    losses, gradients, updates = [], {}, {}
    for step in range(2):
        batch = {key: torch.from_numpy(value) for key, value in data.batch(step).items()}
        optimizer.zero_grad()
        loss = module.loss(net, batch)
        loss.backward()
        losses.append(float(loss.detach()))
        if step == 0:
            gradients = {name: p.grad.numpy().copy() for name, p in net.named_parameters()}
        optimizer.step()
        if step == 0:
            updates = {
                name: parameter.detach().numpy() - weights[name]
                for name, parameter in net.named_parameters()
            }
    return Run(tuple(losses), gradients, updates)


def port_run(pair: str, fault: str | None, steps: int, updating: bool = True) -> Run:
    weights, module, data = initial_weights(pair), part(pair, "mindspore_net"), part(pair, "data")
    net = module.make_net(fault)
    net.set_train()
    parameters = dict(net.parameters_and_names())
    for name, parameter in parameters.items():
        parameter.set_data(Tensor(weights[reference_name(name)].copy()))
    names = {id(parameter): reference_name(name) for name, parameter in parameters.items()}
    trained = net.trainable_params()
    before = [parameter.asnumpy().copy() for parameter in trained]
    # A MindSpore optimizer compiles for a second or two on its first step.
    optimizer = module.make_optimizer(net, fault) if updating else None
    step_function = mindspore.value_and_grad(
        lambda batch: module.loss(net, batch, fault), None, trained
    )
    losses, gradients, updates = [], {}, {}
    for step in range(steps):
        batch = {key: Tensor(value) for key, value in data.batch(step).items()}
        loss, taken = step_function(batch)
        losses.append(float(loss.asnumpy()))
        if optimizer is not None:
            optimizer(taken)
        if step == 0:
            gradients = {names[id(p)]: g.asnumpy() for p, g in zip(trained, taken, strict=True)}
            updates = {
                names[id(p)]: p.asnumpy() - old for p, old in zip(trained, before, strict=True)
            }
    return Run(tuple(losses), gradients, updates)


def largest_gap(port: Arrays, reference: Arrays) -> float:
    """The largest relative norm of a difference, infinite where one side lacks a parameter.

    A norm counts as at least 1e-3 of the pair's largest: a key's bias has no gradient in theory.
    """
    if port.keys() != reference.keys():
        return float("inf")
    floor = 1e-3 * max(float(np.linalg.norm(value)) for value in reference.values())
    return max(
        float(np.linalg.norm(port[name] - value)) / max(float(np.linalg.norm(value)), floor)
        for name, value in reference.items()
    )


def loss_gap(port: Run, reference: Run) -> float:
    pairs = zip(port.losses, reference.losses, strict=False)
    return max(abs(ours - theirs) / abs(theirs) for ours, theirs in pairs)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_clean_port_agrees_in_loss_gradients_and_update(pair: str) -> None:
    expected, got = reference_run(pair), port_run(pair, None, steps=2)
    assert len(got.losses) == 2
    assert loss_gap(got, expected) < 1e-5
    assert largest_gap(got.gradients, expected.gradients) < AGREES
    assert largest_gap(got.updates, expected.updates) < AGREES


@pytest.mark.parametrize(
    ("pair", "fault"),
    [
        pytest.param(pair, fault, id=f"{pair}-{fault.name}")
        for pair in PAIRS
        for fault in faults(pair)
    ],
)
def test_each_fault_shows_on_the_rung_it_is_declared_for(pair: str, fault: Fault) -> None:
    expected = reference_run(pair)
    got = port_run(pair, fault.name, steps=1, updating=fault.stage == "update")
    gradients = largest_gap(got.gradients, expected.gradients)
    if fault.stage == "update":
        assert loss_gap(got, expected) < 1e-5
        assert gradients < AGREES
        assert largest_gap(got.updates, expected.updates) > 100 * AGREES
    else:
        assert gradients > AGREES
    if fault.backward_only:
        assert loss_gap(got, expected) < 1e-5
        assert gradients > 100 * AGREES


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_has_enough_faults_of_each_kind(pair: str) -> None:
    declared = faults(pair)
    assert len({fault.name for fault in declared}) == len(declared) >= 6
    assert sum(fault.silent for fault in declared) >= 2
    assert sum(fault.backward_only for fault in declared) >= 2


@pytest.mark.parametrize("pair", PAIRS)
def test_every_accepted_place_is_a_name_of_the_reference(pair: str) -> None:
    net = reference(pair)
    places = {name for name, _ in net.named_modules()}
    places |= {name for name, _ in net.named_parameters(remove_duplicate=False)}
    places |= {"loss", "step1"}
    unknown = {place for fault in faults(pair) for place in fault.first} - places
    assert unknown == set()


@pytest.mark.parametrize("pair", PAIRS)
def test_an_unknown_fault_is_refused_with_the_known_names(pair: str) -> None:
    module, known = part(pair, "mindspore_net"), faults(pair)[0].name
    net = module.make_net()
    for make in (
        lambda: module.make_net("no-such-fault"),
        lambda: module.loss(net, {}, "no-such-fault"),
        lambda: module.make_optimizer(net, "no-such-fault"),
    ):
        with pytest.raises(ValueError, match=known):
            make()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_batch_depends_on_its_step_alone(pair: str) -> None:
    batch = part(pair, "data").batch
    for key, value in batch(0).items():
        assert value.dtype in (np.int32, np.float32)
        np.testing.assert_array_equal(value, batch(0)[key])
    assert any(not np.array_equal(value, batch(1)[key]) for key, value in batch(0).items())
