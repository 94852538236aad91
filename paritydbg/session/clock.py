"""When a training step begins and ends, told from what hooks can see; frameworks do not appear here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class StepClock:
    """Counts steps and micro-batches from the order in which forwards, gradients and updates arrive.

    A step ends with the optimizers that run after a backward pass and is closed by the next forward,
    so that two optimizers in a row share it. While an optimizer is known, a forward that follows a
    backward without an update begins a micro-batch (gradient accumulation); with no optimizer it
    begins a step. ``end_step`` closes a step by hand and wins over all guessing: once it was called,
    only it ends steps.

    Attributes:
        begins, ends: called when a step opens and when it closes, with the clock at that step.
        step: of the open step, else of the last one; 0 before the first.
        micro: micro-batch within the step, from 0.
        open: whether a step is going on.
        by_hand: whether ``end_step`` was ever called.
        optimizer_known: whether an optimizer works on the watched nets.
    """

    begins: Callable[[], None] = lambda: None
    ends: Callable[[], None] = lambda: None
    step: int = 0
    micro: int = 0
    open: bool = False
    by_hand: bool = False
    optimizer_known: bool = False
    _gradient_seen: bool = field(default=False, repr=False)
    _updated: bool = field(default=False, repr=False)

    def forward_begins(self) -> None:
        """A watched net is called from outside of every watched net."""
        if self.open and not self.by_hand and self._step_is_over():
            self.close()
        if not self.open:
            self._open()
        elif self._gradient_seen:
            self.micro += 1
            self._gradient_seen = False

    def gradient_arrives(self) -> None:
        """A hook delivered a gradient."""
        self._gradient_seen = True

    def optimizer_runs(self) -> None:
        """An optimizer is about to change, or has changed, watched parameters."""
        self.optimizer_known = True
        self._updated = True

    def end_step(self) -> None:
        """The user says that the step is over; one that never opened opens first, so that it counts."""
        self.by_hand = True
        if not self.open:
            self._open()
        self.close()

    def close(self) -> None:
        """Close the step that is open, if one is."""
        if not self.open:
            return
        # Still open while `ends` runs: what it records belongs to this step.
        try:
            self.ends()
        finally:
            self.open = False

    def _step_is_over(self) -> bool:
        return self._updated or (self._gradient_seen and not self.optimizer_known)

    def _open(self) -> None:
        self.step += 1
        self.micro = 0
        self._gradient_seen = False
        self._updated = False
        self.open = True
        self.begins()
