"""The with-block: ``with paritydbg.capture(net, "ref.h5", optimizer=opt) as cap``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from paritydbg.adapters import Adapter, Recorder, adapter_for
from paritydbg.dump.writer import DumpWriter
from paritydbg.errors import NothingCapturedError, UsageError, in_a_line
from paritydbg.model.event import Phase, Role, Values
from paritydbg.model.forcing import ForcingPlan
from paritydbg.model.record import Environment
from paritydbg.session.forcing import start
from paritydbg.session.plan import CapturePlan, StepChoice, parse_roles
from paritydbg.session.recording import Recording, Sink


class Capture:
    """The handle inside the block: what hooks on the nets cannot see is given through it by hand."""

    def __init__(self, recording: Recording, adapter: Adapter, path: str) -> None:
        self.path = path
        self._recording = recording
        self._adapter = adapter
        self._waiting: list[tuple[Role, str, Values]] = []

    def batch(self, **entries: object) -> None:
        """Record the batch of the step that comes next, or is going on: ``cap.batch(x=x, y=y)``."""
        self._give(Role.BATCH, entries)

    def loss(self, value: object, name: str = "loss") -> None:
        """Record the loss of the step that is going on."""
        self._give(Role.LOSS, {name: value})

    def state(self, **entries: object) -> None:
        """Record anything else that a step leaves behind: ``cap.state(ema=ema, lr=0.1)``.

        After the step was ended by hand it still counts for that step.
        """
        clock = self._recording.clock
        if clock.by_hand and not clock.open and clock.step:
            self._put(Role.STATE, entries, clock.step)
        else:
            self._give(Role.STATE, entries)

    def step(self) -> None:
        """End the step by hand; from then on only this ends steps."""
        self._recording.clock.end_step()

    def _give(self, role: Role, entries: Mapping[str, object]) -> None:
        if self._recording.clock.open:
            self._put(role, entries, self._recording.clock.step)
        else:
            # What is given before the first forward belongs to the step that it opens. The values
            # are copied now: the script may change them before then.
            self._waiting += [
                (role, name, self._values(role, name, v)) for name, v in entries.items()
            ]

    def _step_begins(self) -> None:
        waiting, self._waiting = self._waiting, []
        for role, name, values in waiting:
            self._put(role, {name: values}, self._recording.clock.step)

    def _put(self, role: Role, entries: Mapping[str, object], step: int) -> None:
        recording = self._recording
        if step not in recording.plan.steps or not recording.plan.takes(role, ""):
            return
        phase = Phase.UPDATE if role is Role.STATE else Phase.FORWARD
        for name, value in entries.items():
            values = self._values(role, name, value)
            recording.tensor(phase, role, name, values, step=step)

    def _values(self, role: Role, name: str, value: object) -> Values:
        values = value if isinstance(value, Values) else self._adapter.values(value)
        if values is None:
            raise UsageError(
                f"{role.value} entry {name!r} is a {type(value).__name__}; give a tensor, an array "
                "or a number"
            )
        return values


@contextmanager
def capture(
    net: object,
    path: str | os.PathLike[str],
    *,
    optimizer: object = None,
    steps: str | None = None,
    layers: Sequence[str] = (),
    roles: Sequence[str] = (),
    sketch: bool = False,
    forced_by: ForcingPlan | None = None,
    perturbed: int = 0,
    promoted: bool = False,
    scaled: float = 0.0,
    noise_from: Sequence[str | os.PathLike[str]] = (),
) -> Iterator[Capture]:
    """Record training steps of one or several nets into a dump.

    Args:
        net: a ``torch.nn.Module`` or ``mindspore.nn.Cell``, or a mapping from a name to one; the
            name becomes the first part of its layers' names.
        path: of the dump, made when the first tensor arrives.
        optimizer: the optimizer or optimizers that work on the nets; None for forward and backward
            alone.
        steps: which steps of those in the block, ``1-3``; all by default.
        layers: shell-style patterns of layer names to take; all by default.
        roles: roles to take (``output``, ``grad`` …); all by default.
        sketch: whether tensors over 2 KB are kept as statistics and a sketch, from which differences
            are estimated with a standard error of 4.4 %. The batch, and parameters and buffers before
            the first step, are kept as values: a port starts from them.
        forced_by: a forced replay (see `paritydbg.plan_forcing`): every layer is given the
            reference's values, forward and backward, so that each layer's error is its own.
        perturbed: seed of a last-bit perturbation of what is given, 0 for none.
        promoted: whether a forced replay computes in float64 (torch nets only).
        scaled: what a forced replay multiplies the inputs of the reference's leaves by, 0 to leave
            them.
        noise_from: dumps of perturbed replays and of one in float64; how far each tensor lies from
            theirs is recorded beside it.

    Yields:
        A handle for what hooks cannot see: batch, loss, state, the end of a step.

    Raises:
        UsageError: the net, optimizer, steps or roles cannot be used; a sketch of perturbed replays;
            a framework that cannot compute everything in float64.
        NothingCapturedError: the block ended, and no net was called in a wanted step.
        DumpError: the dump cannot be written.
    """
    nets = dict(net) if isinstance(net, Mapping) else {"": net}
    if not nets:
        raise UsageError("no net was given; give a net, or a mapping from a name to a net")
    adapter = adapter_for(next(iter(nets.values())))
    for name, one in nets.items():
        if not adapter.owns(one):
            raise UsageError(
                f"net {name!r} is no {adapter.name} net; capture one framework at a time"
            )
    plan = CapturePlan(
        StepChoice.parse(steps) if steps is not None else StepChoice(),
        tuple(layers),
        parse_roles(tuple(roles)),
    )
    if sketch and noise_from:
        raise UsageError("noise is measured on values; leave sketch away beside noise_from")
    target = os.fspath(path)

    def open_sink(environment: Environment) -> Sink:
        return DumpWriter(target, environment, command=" ".join(sys.argv), sketch=sketch)

    moved = [os.fspath(one) for one in noise_from]
    forcing = None if forced_by is None else start(forced_by, perturbed, moved, promoted, scaled)
    recording = Recording(open_sink, plan, adapter.environment(), forcing=forcing)
    optimizers = _listed(optimizer)
    recording.clock.optimizer_known = bool(optimizers)
    for records in adapter.structure(nets):
        for record in records:
            recording.record(record)
    for one in optimizers:
        recording.record(adapter.optimizer_record(one, nets))
    recorder = adapter.recorder(nets, optimizers, recording)
    handle = Capture(recording, adapter, target)
    _wire(recording, recorder, handle)
    recorder.attach()
    try:
        yield handle
    except BaseException as error:
        # Not a handler: the dump is told how the run ended, and the error goes on its way.
        recorder.detach()
        recording.close(complete=False, ended=f"the step raised {in_a_line(error)}")
        raise
    try:
        recording.clock.close()
    finally:
        recorder.detach()
        recording.close()
    if not recording.events:
        raise NothingCapturedError(
            f"nothing was captured for {target}: the net was not called inside the block in a "
            f"wanted step (steps {plan.steps})"
        )


def _wire(recording: Recording, recorder: Recorder, handle: Capture) -> None:
    """Let the clock's steps reach the recorder and the handle, for the steps that are wanted."""

    def begins() -> None:
        if recording.live:
            recorder.step_begins()
            handle._step_begins()

    def ends() -> None:
        if recording.clock.step in recording.plan.steps:
            recorder.step_ends()
        if recording.plan.steps.over(recording.clock.step + 1):
            recorder.detach()

    recording.clock.begins = begins
    recording.clock.ends = ends


def _listed(optimizer: object) -> tuple[object, ...]:
    if optimizer is None:
        return ()
    if isinstance(optimizer, (list, tuple)):
        return tuple(optimizer)
    return (optimizer,)
