"""What the MindSpore recorder captures, held against what MindSpore itself gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import paritydbg
from paritydbg.dump.reader import Dump
from paritydbg.errors import NothingCapturedError, UsageError
from paritydbg.model.event import Event

ms.set_context(mode=ms.PYNATIVE_MODE)
Step = Callable[[nn.Cell], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.h5"


def data(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def recorded(net: nn.Cell, path: Path, step: Step, **options: Any) -> Dump:
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


def gradients(net: nn.Cell, x: Tensor | None = None) -> Any:
    """The loss and the gradients of the trainable parameters."""
    given = data(4, 6) if x is None else x
    return ms.value_and_grad(lambda: (net(given) ** 2).sum(), None, net.trainable_params())()


def test_gradients_and_updates_are_those_that_mindspore_gives(path: Path) -> None:
    net = nn.SequentialCell(nn.Dense(6, 5), nn.Tanh(), nn.Dense(5, 2))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    start = {p.name: p.asnumpy().copy() for p in net.trainable_params()}
    kept: dict[str, Any] = {}

    def step(net: nn.Cell) -> None:
        _, found = gradients(net)
        kept["grad"] = [g.asnumpy().copy() for g in found]
        clipped = ops.clip_by_global_norm(found, 0.01)
        kept["applied"] = [g.asnumpy().copy() for g in clipped]
        optimizer(clipped)

    dump = recorded(net, path, step, optimizer=optimizer)
    for number, parameter in enumerate(net.trainable_params()):
        name = parameter.name
        assert np.array_equal(value(dump, "grad", name), kept["grad"][number])
        assert np.array_equal(value(dump, "grad_applied", name), kept["applied"][number])
        before, after = events(dump, "parameter", name)
        assert np.array_equal(dump.load(before), start[name])
        assert np.array_equal(dump.load(after), parameter.asnumpy())
    assert value(dump, "state", "lr") == pytest.approx(0.1)


class Repeated(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(6, 6)

    def construct(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = ops.tanh(self.fc(x))
        return x


def test_calls_of_one_layer_keep_their_gradients_apart(path: Path) -> None:
    dump = recorded(Repeated(), path, gradients)
    for call in range(2):
        output = value(dump, "output", "fc", call=call)
        arrives = value(dump, "grad_input", "fc", call=call + 1)
        expected = arrives * (1 - np.tanh(output) ** 2)
        assert np.allclose(value(dump, "grad_output", "fc", call=call), expected, atol=1e-5)


class Inner(nn.Cell):
    def construct(self, x: Tensor, scale: Tensor) -> dict[str, Any]:
        return {"a": x * scale, "b": (x + 1, None)}


class Nested(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def construct(self, x: Tensor) -> Tensor:
        found = self.inner(x, scale=Tensor(2.0, ms.float32))
        return found["a"] + found["b"][0]


def test_nested_results_and_keywords_have_their_slots(path: Path) -> None:
    dump = recorded(Nested(), path, lambda net: net(data(2, 2)))
    assert [e.key.slot for e in events(dump, "output", "inner")] == ["a", "b.0"]
    assert [e.key.slot for e in events(dump, "input", "inner")] == ["0", "scale"]


class Tied(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Dense(6, 6), nn.Dense(6, 6)
        self.last.weight = self.first.weight

    def construct(self, x: Tensor) -> Tensor:
        return self.last(ops.tanh(self.first(x)))


def test_tied_weights_are_one_tensor_under_two_names(path: Path) -> None:
    dump = recorded(Tied(), path, gradients)
    ties = {p.name: p.tied_to for p in dump.run.parameters}
    assert ties["first.weight"] == ""
    assert ties["last.weight"] == "first.weight"
    assert "last.weight" not in {e.key.name for e in events(dump, "grad")}


def test_frozen_and_detached_parts_have_no_gradient(path: Path) -> None:
    class Cut(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Dense(6, 6), nn.Dense(6, 2)

        def construct(self, x: Tensor) -> Tensor:
            return self.b(ops.stop_gradient(self.a(x)))

    net = Cut()
    net.b.bias.requires_grad = False
    dump = recorded(net, path, gradients)
    assert "b.weight" in {e.key.name for e in events(dump, "grad")}
    assert "b.bias" not in {e.key.name for e in events(dump, "grad")}
    assert not events(dump, "grad_output", "a")
    # MindSpore gives zeros where torch gives nothing.
    assert all(not dump.load(e).any() for e in events(dump, "grad", "a.weight"))


def test_accumulated_gradients_are_told_apart_by_micro_batch(path: Path) -> None:
    net = nn.Dense(6, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.1)

    def steps(net: nn.Cell) -> None:
        for _ in range(2):
            (_, first), (_, second) = gradients(net), gradients(net)
            optimizer(tuple(a + b for a, b in zip(first, second, strict=True)))

    dump = recorded(net, path, steps, optimizer=optimizer)
    found = [(e.key.step, e.key.micro) for e in events(dump, "grad", "weight")]
    assert found == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_names_are_the_users_own_under_mixed_precision(path: Path) -> None:
    net = nn.SequentialCell(nn.Dense(6, 5), nn.BatchNorm1d(5), nn.Dense(5, 2)).set_train()
    mixed = ms.amp.auto_mixed_precision(net, "O2")
    dump = recorded(mixed, path, gradients)
    assert {layer.name for layer in dump.run.layers} == {"", "0", "1", "2"}
    assert not [e for e in dump.events if "_backbone" in e.key.name]
    (output,) = events(dump, "output", "0")
    assert output.dtype == "float16"


def test_a_cell_with_its_own_bprop_is_listed(path: Path) -> None:
    class Own(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x * 2

        def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
            return (dout * 2,)

    dump = recorded(nn.SequentialCell(nn.Dense(6, 5), Own()), path, gradients)
    unhooked = {layer.name: layer.unhooked for layer in dump.run.layers}
    assert "own bprop" in unhooked["1"]
    assert not unhooked["0"]
    assert events(dump, "input", "1")
    assert "1" in {skipped.name for skipped in dump.run.skipped}


def test_the_inside_of_a_recurrent_layer_is_not_captured(path: Path) -> None:
    class Reader(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(6, 4, batch_first=True)

        def construct(self, x: Tensor) -> Tensor:
            return self.lstm(x)[0]

    dump = recorded(Reader(), path, lambda net: gradients(net, data(2, 3, 6)))
    assert {e.key.name for e in events(dump, "output")} == {"", "lstm"}
    assert "lstm.weight_ih_l0" in {e.key.name for e in events(dump, "grad")}


def test_running_statistics_are_buffers(path: Path) -> None:
    net = nn.SequentialCell(nn.Dense(6, 5), nn.BatchNorm1d(5)).set_train()
    dump = recorded(net, path, gradients)
    names = {e.key.name for e in events(dump, "buffer")}
    assert names == {"1.moving_mean", "1.moving_variance"}
    assert not names & {e.key.name for e in events(dump, "parameter")}


def test_hooks_are_gone_afterwards_also_when_a_layer_raises(path: Path) -> None:
    class Raises(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            raise ValueError("no")

    net = nn.SequentialCell(nn.Dense(6, 6), Raises())
    with pytest.raises(ValueError, match="no"):
        recorded(net, path, lambda net: net(data(2, 6)))
    for cell in net.cells():
        assert not cell._forward_hook
        assert not cell._forward_pre_hook
    with paritydbg.open_dump(path) as dump:
        assert "ValueError: no" in dump.run.ended


def test_a_net_that_was_not_called_is_an_error_that_says_so(path: Path) -> None:
    with pytest.raises(NothingCapturedError, match="the net was not called"):
        recorded(nn.Dense(2, 2), path, lambda net: None)


def test_a_torch_optimizer_or_an_own_one_does_not_stop_the_capture(path: Path) -> None:
    class Own:
        def __call__(self, gradients: Any) -> None: ...

    dump = recorded(nn.Dense(6, 2), path, gradients, optimizer=Own())
    assert events(dump, "grad")
    assert dump.run.optimizers[0].type == "Own"


def test_nets_of_two_frameworks_are_refused(path: Path) -> None:
    import torch

    nets = {"a": nn.Dense(2, 2), "b": torch.nn.Linear(2, 2)}
    with pytest.raises(UsageError, match="one framework at a time"), paritydbg.capture(nets, path):
        pass
