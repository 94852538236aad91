"""The with-block, through a toy framework: steps, things given by hand, every way it can end."""

from __future__ import annotations

from pathlib import Path

import pytest

import paritydbg
from paritydbg.dump.reader import open_dump
from paritydbg.errors import NothingCapturedError, UsageError
from paritydbg.model.event import Phase, Role
from paritydbg.session import block
from tests.session.toy_adapter import ToyAdapter, ToyNet


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> ToyAdapter:
    toy = ToyAdapter()
    monkeypatch.setattr(block, "adapter_for", lambda net: toy)
    return toy


def events(path: Path) -> list[str]:
    with open_dump(path) as dump:
        return [str(event.key) for event in dump.events]


def test_each_forward_after_a_backward_is_a_step(adapter: ToyAdapter, tmp_path: Path) -> None:
    net, path = ToyNet(), tmp_path / "a.h5"
    with paritydbg.capture(net, path):
        for _ in range(2):
            net(1.0)
            net.backward()
    with open_dump(path) as dump:
        assert {event.key.step for event in dump.events} == {1, 2}
        assert dump.run.complete
        assert [layer.api for layer in dump.run.layers] == ["toy.ToyNet"]


def test_the_weights_after_the_step_are_recorded_where_an_optimizer_is_known(
    adapter: ToyAdapter, tmp_path: Path
) -> None:
    net, path = ToyNet(), tmp_path / "a.h5"
    with paritydbg.capture(net, path, optimizer=object()) as cap:
        net(1.0)
        net.backward()
        net.weight += 1
        cap.step()
    with open_dump(path) as dump:
        (after,) = [e for e in dump.events if e.key.phase is Phase.UPDATE]
        assert dump.load(after) == 3.0


def test_what_is_given_by_hand_belongs_to_its_step(adapter: ToyAdapter, tmp_path: Path) -> None:
    net, path = ToyNet(), tmp_path / "a.h5"
    with paritydbg.capture(net, path) as cap:
        for step in (1, 2):
            cap.batch(x=float(step))
            cap.loss(net(float(step)))
            cap.step()
        cap.state(ema=9.0)
    with open_dump(path) as dump:
        given = {
            (e.key.step, e.key.role, e.key.name): float(dump.load(e))
            for e in dump.events
            if e.key.role in (Role.BATCH, Role.LOSS, Role.STATE)
        }
    assert given == {
        (1, Role.BATCH, "x"): 1.0,
        (1, Role.LOSS, "loss"): 2.0,
        (2, Role.BATCH, "x"): 2.0,
        (2, Role.LOSS, "loss"): 4.0,
        (2, Role.STATE, "ema"): 9.0,
    }


def test_only_wanted_steps_are_recorded_and_hooks_leave_after_the_last(
    adapter: ToyAdapter, tmp_path: Path
) -> None:
    net, path = ToyNet(), tmp_path / "a.h5"
    with paritydbg.capture(net, path, steps="2") as cap:
        for step in (1, 2, 3):
            cap.batch(x=float(step))
            net(1.0)
            cap.step()
            assert adapter.recorders[0].attached == (step < 2)
    assert events(path) == [
        "step2:forward:weight:parameter",
        "step2:forward:x:batch",
        "step2:forward:(net):output",
    ]


def test_several_nets_carry_their_names(adapter: ToyAdapter, tmp_path: Path) -> None:
    nets = {"gen": ToyNet(), "disc": ToyNet()}
    with paritydbg.capture(nets, tmp_path / "a.h5", roles=["output"]):
        nets["disc"](nets["gen"](1.0))
    assert events(tmp_path / "a.h5")[-2:] == [
        "step1:forward:gen:output",
        "step1:forward:disc:output",
    ]


def test_a_step_that_raises_leaves_a_dump_that_says_so_and_no_hooks(
    adapter: ToyAdapter, tmp_path: Path
) -> None:
    net, path = ToyNet(), tmp_path / "a.h5"

    def failing_step() -> None:
        with paritydbg.capture(net, path):
            net(1.0)
            raise ZeroDivisionError("oops")

    with pytest.raises(ZeroDivisionError):
        failing_step()
    with open_dump(path) as dump:
        assert not dump.run.complete
        assert "ZeroDivisionError: oops" in dump.run.ended
        assert len(dump.events) == 2
    assert net.hooks == []


def test_a_net_that_never_ran_is_an_error_and_leaves_no_file(
    adapter: ToyAdapter, tmp_path: Path
) -> None:
    with (
        pytest.raises(NothingCapturedError, match="the net was not called"),
        paritydbg.capture(ToyNet(), tmp_path / "a.h5"),
    ):
        pass
    assert not (tmp_path / "a.h5").exists()


def test_what_is_no_tensor_is_refused_by_name(adapter: ToyAdapter, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="batch entry 'x' is a str"),
        paritydbg.capture(ToyNet(), tmp_path / "a.h5") as cap,
    ):
        cap.batch(x="a cat")


def test_something_that_is_no_net_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="builtins.int is no net of a known framework"),
        paritydbg.capture(3, tmp_path / "a.h5"),
    ):
        pass
