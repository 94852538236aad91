"""The step clock: when steps begin and end, told from forwards, gradients and updates."""

from __future__ import annotations

from paritydbg.session.clock import StepClock


class Log:
    """A clock that notes what it calls."""

    def __init__(self, optimizer_known: bool = False) -> None:
        self.calls: list[str] = []
        self.clock = StepClock(optimizer_known=optimizer_known)
        self.clock.begins = lambda: self.calls.append(f"begin {self.clock.step}")
        self.clock.ends = lambda: self.calls.append(f"end {self.clock.step}")


def test_an_update_closes_the_step_at_the_next_forward() -> None:
    log = Log()
    for _ in range(2):
        log.clock.forward_begins()
        log.clock.gradient_arrives()
        log.clock.optimizer_runs()
    assert log.calls == ["begin 1", "end 1", "begin 2"]


def test_two_optimizers_in_a_row_share_a_step() -> None:
    log = Log()
    log.clock.forward_begins()
    log.clock.gradient_arrives()
    log.clock.optimizer_runs()
    log.clock.optimizer_runs()
    assert log.clock.step == 1
    assert log.calls == ["begin 1"]


def test_without_an_optimizer_a_forward_after_a_backward_is_a_new_step() -> None:
    log = Log()
    log.clock.forward_begins()
    log.clock.gradient_arrives()
    log.clock.forward_begins()
    assert (log.clock.step, log.clock.micro) == (2, 0)


def test_with_an_optimizer_a_forward_after_a_backward_is_a_micro_batch() -> None:
    log = Log(optimizer_known=True)
    log.clock.forward_begins()
    log.clock.gradient_arrives()
    log.clock.gradient_arrives()
    log.clock.forward_begins()
    assert (log.clock.step, log.clock.micro) == (1, 1)


def test_two_forwards_before_one_backward_share_a_micro_batch() -> None:
    log = Log(optimizer_known=True)
    log.clock.forward_begins()
    log.clock.forward_begins()
    assert (log.clock.step, log.clock.micro) == (1, 0)


def test_once_steps_are_ended_by_hand_nothing_else_ends_them() -> None:
    log = Log(optimizer_known=True)
    log.clock.forward_begins()
    log.clock.gradient_arrives()
    log.clock.end_step()
    log.clock.forward_begins()
    log.clock.gradient_arrives()
    log.clock.optimizer_runs()
    log.clock.forward_begins()
    assert log.calls == ["begin 1", "end 1", "begin 2"]
    assert log.clock.micro == 1


def test_a_step_ended_by_hand_without_a_forward_counts() -> None:
    log = Log()
    log.clock.end_step()
    log.clock.end_step()
    assert log.calls == ["begin 1", "end 1", "begin 2", "end 2"]


def test_what_is_recorded_at_the_end_still_belongs_to_the_step() -> None:
    clock = StepClock()
    seen: list[tuple[int, bool]] = []
    clock.ends = lambda: seen.append((clock.step, clock.open))
    clock.forward_begins()
    clock.close()
    clock.close()
    assert seen == [(1, True)]
    assert not clock.open
