"""The order that ``paritydbg run`` gives to the process it starts: plain values, sent as JSON."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from paritydbg.dump.reader import open_dump
from paritydbg.dump.writer import DumpWriter
from paritydbg.model.record import Environment
from paritydbg.session.forcing import read_plan, start
from paritydbg.session.plan import CapturePlan, StepChoice, parse_roles
from paritydbg.session.recording import Recording, Sink
from paritydbg.session.same_start import SameStart

# The environment variable that carries the order to the started process and its children.
VARIABLE = "PARITYDBG_ORDER"


@dataclass(frozen=True)
class LaunchOrder:
    """What a launched process has to capture.

    Attributes:
        out: where the dump goes.
        steps, layers, roles: as on the command line; see `CapturePlan`.
        model: class name of the net (``ResNet`` or ``package.module.ResNet``), ``""`` to guess.
        loss: name of the loss function or class, ``""`` to guess.
        weights_from, inputs_from: dumps that give the start, ``""`` for the script's own.
        no_dropout: whether every dropout hands on what it is given.
        rename: rename rules for parameters, pairs of pattern and replacement.
        layer_pairs, parameter_pairs: (reference's name, port's name) that a person gave.
        forced_plan: file with the plan of a forced replay, ``""`` for a free run.
        perturbed: seed of a last-bit perturbation of a forced replay, 0 for none.
        promoted: whether a forced replay computes in float64.
        scaled: what a forced replay multiplies the inputs of leaves by, 0 to leave them.
        noise_from: dumps of perturbed and float64 replays; each tensor's noise is recorded from them.
        sketch: whether larger tensors are kept as sketches.
        stop: whether the script is ended after its last wanted step.
        command: the script's command line.
        claims: folder in which processes that capture claim their rank by making a file.
    """

    out: str
    steps: str = "1-3"
    layers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    model: str = ""
    loss: str = ""
    weights_from: str = ""
    inputs_from: str = ""
    rename: tuple[tuple[str, str], ...] = ()
    layer_pairs: tuple[tuple[str, str], ...] = ()
    parameter_pairs: tuple[tuple[str, str], ...] = ()
    no_dropout: bool = False
    forced_plan: str = ""
    perturbed: int = 0
    promoted: bool = False
    scaled: float = 0.0
    noise_from: tuple[str, ...] = ()
    sketch: bool = False
    stop: bool = False
    command: str = ""
    claims: str = ""

    def encoded(self) -> str:
        """The order as JSON text."""
        return json.dumps(asdict(self))

    @staticmethod
    def decoded(text: str) -> LaunchOrder:
        """The order that the text holds."""
        fields = json.loads(text)
        for name in ("layers", "roles", "noise_from"):
            fields[name] = tuple(fields[name])
        for name in ("rename", "layer_pairs", "parameter_pairs"):
            fields[name] = tuple((old, new) for old, new in fields[name])
        return LaunchOrder(**fields)

    def plan(self) -> CapturePlan:
        """What the capture takes.

        Raises:
            UsageError: steps or roles that cannot be read.
        """
        return CapturePlan(StepChoice.parse(self.steps), self.layers, parse_roles(self.roles))

    def recording(self, environment: Environment) -> Recording:
        """A recording into the dump, whose file is made with its first event."""
        rank = self._claim()

        def open_sink(environment: Environment) -> Sink:
            return DumpWriter(
                path_of_rank(self.out, rank),
                environment,
                command=self.command,
                sketch=self.sketch,
            )

        forcing = None
        if self.forced_plan:
            plan = read_plan(self.forced_plan)
            moved = self.noise_from
            forcing = start(plan, self.perturbed, moved, self.promoted, self.scaled)
        return Recording(open_sink, self.plan(), environment, rank, forcing)

    def same_start(self) -> SameStart | None:
        """The start taken from other dumps, None where none was asked for."""
        if not self.weights_from and not self.inputs_from:
            return None
        return SameStart(
            open_dump(self.weights_from) if self.weights_from else None,
            open_dump(self.inputs_from) if self.inputs_from else None,
            self.rename,
            self.layer_pairs,
            self.parameter_pairs,
        )

    def _claim(self) -> int:
        """This process's rank: the launcher's own of torchrun or msrun, else the first that is free."""
        for name in ("RANK", "RANK_ID"):
            if os.environ.get(name, "").isdigit():
                return int(os.environ[name])
        rank = 0
        while self.claims:
            try:
                os.close(os.open(os.path.join(self.claims, str(rank)), os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                rank += 1
        return rank


def path_of_rank(out: str, rank: int) -> str:
    """The dump's path for a rank: as given for rank 0, ``ref.rank1.h5`` for the next."""
    if rank == 0:
        return out
    stem, ending = os.path.splitext(out)
    return f"{stem}.rank{rank}{ending}"
