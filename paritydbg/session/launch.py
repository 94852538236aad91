"""The launched script's side of ``paritydbg run``: what the hook packages' patches talk to.

How the script is started is in `launcher`, how the process is prepared in `bootstrap`.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import TracebackType

from paritydbg.adapters import Adapter, Recorder
from paritydbg.errors import ParitydbgError, in_a_line
from paritydbg.session.order import LaunchOrder
from paritydbg.session.recording import Recording
from paritydbg.session.same_start import SameStart


class Launch:
    """One launched process: carries the order, opens one recording, and ends it.

    A hook package's patches find the net, the loss, the labels and the optimizers, and call `adopt`
    once per net. Everything that follows goes to `recording`.

    Attributes:
        order: what was asked for on the command line.
        recording: the process's one recording, None until a net was adopted.
        same_start: the reference's weights and batches, None if not asked for.
    """

    def __init__(self, order: LaunchOrder, adapter: Adapter) -> None:
        self.order = order
        self.adapter = adapter
        self.recording: Recording | None = None
        self.same_start: SameStart | None = order.same_start()
        self._recorders: list[Recorder] = []
        self._pid = os.getpid()
        self._over = False
        self._ended = ""
        atexit.register(self.finish)
        self._excepthook = sys.excepthook
        sys.excepthook = self._note_exception

    @property
    def active(self) -> bool:
        """Whether this process captures: not in a forked child, not after the last wanted step."""
        return not self._over and os.getpid() == self._pid

    def begin(self) -> Recording:
        """The recording, made on first use."""
        if self.recording is None:
            self.recording = self.order.recording(self.adapter.environment())
            self.recording.clock.begins = self._step_begins
            self.recording.clock.ends = self._step_ends
        return self.recording

    def adopt(self, recorder: Recorder) -> None:
        """Attach a recorder to the recording, for the rest of the run or to its last wanted step."""
        self._recorders.append(recorder)
        recorder.attach()
        if self.recording is not None and self.recording.clock.open and self.recording.live:
            recorder.step_begins()

    def finish(self) -> None:
        """Close the step that is open, take all hooks out, and finish the dump."""
        if not self.active:
            return
        recording = self.recording
        if recording is not None:
            recording.clock.close()
        self._end()

    def _step_begins(self) -> None:
        if self.recording is not None and self.recording.live:
            for recorder in self._recorders:
                recorder.step_begins()

    def _step_ends(self) -> None:
        recording = self.recording
        if recording is None:
            return
        if recording.clock.step in recording.plan.steps:
            for recorder in self._recorders:
                recorder.step_ends()
        if recording.plan.steps.over(recording.clock.step + 1):
            self._end()
            if self.order.stop:
                _leave()

    def _end(self) -> None:
        self._over = True
        for recorder in self._recorders:
            recorder.detach()
        if self.recording is not None:
            self.recording.close(complete=not self._ended, ended=self._ended)

    def _note_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ParitydbgError):
            # Not the script's fault: one line, and the exit code that says so.
            self._ended = str(error)
            self.finish()
            print(f"paritydbg: error: {error}", file=sys.stderr, flush=True)
            os._exit(2)
        self._ended = f"the script raised {in_a_line(error)}"
        self._excepthook(kind, error, trace)


def _leave() -> None:
    """End the script here and now: an exception would have to pass through a framework's engine."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def matches_model(order: LaunchOrder, class_name: str, full_name: str) -> bool:
    """Whether a class is the one that ``--model`` names; True where no model was named."""
    return not order.model or order.model in (class_name, full_name)
