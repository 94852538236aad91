"""Names of further nets and of what they are called with."""

from __future__ import annotations

from paritydbg.session.names import batch_name, free_prefix


def test_the_first_net_has_no_prefix_and_others_bear_their_class() -> None:
    assert free_prefix([], "Net") == ""
    assert free_prefix([""], "Critic") == "Critic"
    assert free_prefix(["", "Critic"], "Critic") == "Critic2"


def test_entries_of_a_batch_tell_net_and_call() -> None:
    assert batch_name("", 0)("0") == "0"
    assert batch_name("", 1)("mask") == "mask#1"
    assert batch_name("Critic", 2)("0") == "Critic.0#2"
