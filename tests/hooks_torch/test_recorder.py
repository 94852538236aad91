"""What the torch recorder captures, held against what torch itself gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import paritydbg
from paritydbg.dump.reader import Dump
from paritydbg.errors import NothingCapturedError, UsageError
from paritydbg.model.event import Event, Role

Step = Callable[[nn.Module], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.h5"


def recorded(net: nn.Module, path: Path, step: Step, **options: Any) -> Dump:
    """The dump of one block in which the step ran."""
    with paritydbg.capture(net, path, **options):
        step(net)
    return paritydbg.open_dump(path)


def events(dump: Dump, role: str, name: str | None = None, **wanted: Any) -> list[Event]:
    """Events of a role, of one name if given, and with these fields of the key."""
    return [
        e
        for e in dump.events
        if e.key.role.value == role
        and (name is None or e.key.name == name)
        and all(getattr(e.key, field) == value for field, value in wanted.items())
    ]


def value(dump: Dump, role: str, name: str, **wanted: Any) -> Any:
    (event,) = events(dump, role, name, **wanted)
    return dump.load(event)


def backward(net: nn.Module) -> None:
    net(torch.randn(4, 6)).square().sum().backward()


def test_an_inplace_activation_does_not_reach_into_captured_values(path: Path) -> None:
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True))
    dump = recorded(net, path, backward)
    before, after = value(dump, "output", "0"), value(dump, "output", "1")
    assert (before < 0).any()
    assert np.array_equal(np.maximum(before, 0), after)


def test_gradients_are_those_that_torch_gives(path: Path) -> None:
    net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    start = {n: p.detach().numpy().copy() for n, p in net.named_parameters()}
    kept: dict[str, Any] = {}

    def step(net: nn.Module) -> None:
        backward(net)
        kept["grad"] = {n: p.grad.numpy().copy() for n, p in net.named_parameters()}
        nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        kept["applied"] = {n: p.grad.numpy().copy() for n, p in net.named_parameters()}
        optimizer.step()

    dump = recorded(net, path, step, optimizer=optimizer)
    for name, parameter in net.named_parameters():
        assert np.array_equal(value(dump, "grad", name), kept["grad"][name])
        assert np.array_equal(value(dump, "grad_applied", name), kept["applied"][name])
        before, after = events(dump, "parameter", name)
        assert np.array_equal(dump.load(before), start[name])
        assert np.array_equal(dump.load(after), parameter.detach().numpy())
    assert value(dump, "state", "lr") == 0.1


class Repeated(nn.Module):
    """One layer three times."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.tanh(self.fc(x))
        return x


def test_calls_of_one_layer_keep_their_gradients_apart(path: Path) -> None:
    net = Repeated()
    dump = recorded(net, path, backward)
    for call in range(3):
        output = torch.from_numpy(value(dump, "output", "fc", call=call))
        gradient = torch.from_numpy(value(dump, "grad_output", "fc", call=call))
        arrives = value(dump, "grad_output", "", call=0) if call == 2 else None
        if arrives is None:
            arrives = value(dump, "grad_input", "fc", call=call + 1)
        expected = torch.from_numpy(arrives) * (1 - torch.tanh(output) ** 2)
        torch.testing.assert_close(gradient, expected)


class Nested(nn.Module):
    """Nested results, a None, and a keyword argument."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.inner(x, scale=torch.tensor(2.0))
        return found["a"] + found["b"][0]


class Inner(nn.Module):
    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> dict[str, Any]:
        return {"a": x * scale, "b": (x, None), "c": 3}


def test_nested_results_and_keywords_have_their_slots(path: Path) -> None:
    dump = recorded(Nested(), path, lambda net: net(torch.ones(2, 2)))
    assert [e.key.slot for e in events(dump, "output", "inner")] == ["a", "b.0"]
    assert [e.key.slot for e in events(dump, "input", "inner")] == ["0", "scale"]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(x))


def test_tied_weights_are_one_tensor_under_two_names(path: Path) -> None:
    net = Tied()
    dump = recorded(net, path, lambda net: net(torch.tensor([1, 2])).sum().backward())
    assert [e.key.name for e in events(dump, "grad")] == ["embed.weight"]
    assert net.embed.weight.grad is not None
    assert np.array_equal(value(dump, "grad", "embed.weight"), net.embed.weight.grad.numpy())
    ties = {p.name: p.tied_to for p in dump.run.parameters}
    assert ties == {"embed.weight": "", "head.weight": "embed.weight"}


def test_frozen_and_detached_parts_have_no_gradient(path: Path) -> None:
    net = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2))
    net[2].bias.requires_grad_(False)

    def step(net: Any) -> None:
        net[2](net[1](net[0](torch.randn(3, 6)).detach())).sum().backward()

    dump = recorded(net, path, step)
    assert {e.key.name for e in events(dump, "grad")} == {"1.weight", "1.bias", "2.weight"}
    assert not events(dump, "grad_output", "0")
    trainable = {p.name: p.trainable for p in dump.run.parameters}
    assert trainable["2.weight"]
    assert not trainable["2.bias"]


def test_accumulated_gradients_are_told_apart_by_micro_batch(path: Path) -> None:
    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def steps(net: nn.Module) -> None:
        for _ in range(2):
            optimizer.zero_grad()
            backward(net)
            backward(net)
            optimizer.step()

    dump = recorded(net, path, steps, optimizer=optimizer)
    found = [(e.key.step, e.key.micro) for e in events(dump, "grad", "weight")]
    assert found == [(1, 0), (1, 1), (2, 0), (2, 1)]
    first, second = (dump.load(e) for e in events(dump, "grad", "weight", step=1))
    assert np.allclose(value(dump, "grad_applied", "weight", step=1), first + second)


def test_without_an_optimizer_every_backward_pass_is_a_step(path: Path) -> None:
    def steps(net: nn.Module) -> None:
        backward(net)
        backward(net)

    dump = recorded(nn.Linear(6, 2), path, steps)
    assert {e.key.step for e in dump.events} == {1, 2}


def test_forward_alone_is_captured_without_gradients(path: Path) -> None:
    def step(net: nn.Module) -> None:
        with torch.no_grad():
            net.eval()(torch.randn(2, 6))

    dump = recorded(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)), path, step)
    assert len(events(dump, "output")) == 3
    assert not events(dump, "grad_output")
    assert {e.key.name for e in events(dump, "buffer")} >= {"1.running_mean", "1.running_var"}


def test_packed_sequences_are_captured_padded(path: Path) -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]

    x, lengths = torch.randn(3, 5, 3), torch.tensor([2, 5, 4])
    net = Reader()
    dump = recorded(net, path, lambda net: net(x, lengths).sum().backward())
    given = value(dump, "input", "lstm", slot="0")
    assert given.shape == (3, 5, 3)
    assert np.array_equal(given[0, :2], x[0, :2].numpy())
    assert not given[0, 2:].any()
    assert np.array_equal(value(dump, "output", "lstm", slot="0"), net(x, lengths).detach().numpy())
    assert value(dump, "grad_output", "lstm", slot="0").shape == (3, 5, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes_keep_their_names_and_values(path: Path, dtype: torch.dtype) -> None:
    net = nn.Linear(3, 2).to(dtype)
    x = torch.randn(4, 3).to(dtype)
    dump = recorded(net, path, lambda net: net(x))
    (event,) = events(dump, "input", "")
    assert event.dtype == str(dtype).removeprefix("torch.")
    assert np.array_equal(dump.load(event).astype(np.float64), x.double().numpy())


def no_hooks(net: nn.Module) -> bool:
    return all(
        not layer._forward_hooks and not layer._forward_pre_hooks for layer in net.modules()
    ) and all(not p._backward_hooks for p in net.parameters())


def test_hooks_are_gone_afterwards_also_when_a_layer_raises(path: Path) -> None:
    class Raises(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("no")

    net = nn.Sequential(nn.Linear(6, 6), Raises())
    with pytest.raises(ValueError, match="no"):
        recorded(net, path, backward)
    assert no_hooks(net)
    with paritydbg.open_dump(path) as dump:
        assert "ValueError: no" in dump.run.ended
        assert events(dump, "output", "0")
    fine = nn.Linear(6, 2)
    recorded(fine, path, backward)
    assert no_hooks(fine)


def test_a_net_that_was_not_called_is_an_error_that_says_so(path: Path) -> None:
    with pytest.raises(NothingCapturedError, match="the net was not called"):
        recorded(nn.Linear(2, 2), path, lambda net: None)
    assert not path.exists()


def test_what_is_no_net_is_refused(path: Path) -> None:
    with pytest.raises(UsageError), paritydbg.capture("net", path):
        pass


def test_an_optimizer_of_ones_own_does_not_stop_the_capture(path: Path) -> None:
    class Own:
        def step(self) -> None: ...

    dump = recorded(nn.Linear(6, 2), path, backward, optimizer=Own())
    assert events(dump, "grad")
    assert dump.run.optimizers[0].type == "Own"


def test_only_what_was_asked_for_is_taken(path: Path) -> None:
    net = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 2))
    dump = recorded(net, path, backward, layers=["1"], roles=["output", "grad_output"])
    # The net itself is always taken: everything else is judged between its ends.
    assert {e.key.name for e in dump.events} == {"", "1"}
    assert {e.key.role for e in dump.events} == {Role.OUTPUT, Role.GRAD_OUTPUT}
