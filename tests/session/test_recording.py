"""A recording: opened by its first event, keeping call numbers per step."""

from __future__ import annotations

import numpy as np

from paritydbg.model.event import Phase, Role, Values
from paritydbg.model.record import Environment
from paritydbg.session.plan import CapturePlan, StepChoice
from paritydbg.session.recording import Recording
from tests.session.list_sink import ListSink

EVERYTHING = CapturePlan()


def made(plan: CapturePlan = EVERYTHING) -> tuple[Recording, list[ListSink]]:
    opened: list[ListSink] = []

    def open_sink(environment: Environment) -> ListSink:
        opened.append(ListSink())
        return opened[-1]

    return Recording(open_sink, plan, Environment("torch", "2", "cpu")), opened


def test_nothing_is_opened_before_the_first_event() -> None:
    recording, opened = made()
    recording.record("a note")
    recording.close()
    assert opened == []


def test_records_that_waited_go_before_the_first_event_and_once() -> None:
    recording, opened = made()
    recording.record("a note")
    recording.record("a note")
    recording.clock.forward_begins()
    recording.tensor(Phase.FORWARD, Role.OUTPUT, "fc", Values.of(np.ones(2)))
    assert opened[0].records == ["a note"]
    assert opened[0].events[0][0].step == 1


def test_calls_are_numbered_within_a_step() -> None:
    recording, _ = made()
    recording.clock.forward_begins()
    assert [recording.next_call("fc"), recording.next_call("fc")] == [0, 1]
    recording.clock.end_step()
    recording.clock.forward_begins()
    assert recording.next_call("fc") == 0


def test_only_wanted_steps_are_live() -> None:
    recording, _ = made(CapturePlan(steps=StepChoice(2, 2)))
    recording.clock.forward_begins()
    assert not recording.wants(Role.OUTPUT, "fc")
    recording.clock.end_step()
    recording.clock.forward_begins()
    assert recording.wants(Role.OUTPUT, "fc")


def test_a_backward_hook_may_name_the_step_of_its_forward() -> None:
    recording, opened = made()
    recording.clock.forward_begins()
    recording.clock.end_step()
    recording.tensor(Phase.BACKWARD, Role.GRAD_OUTPUT, "fc", Values.of(np.ones(1)), step=1, micro=2)
    key = opened[0].events[0][0]
    assert (key.step, key.micro) == (1, 2)
