"""What a dump says about a run beside its tensors: layers, parameters, optimizers, environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

from paritydbg.model.event import EventKey, Phase, Role

# JSON values only, so that a record survives any file format.
Scalar: TypeAlias = str | int | float | bool | None
Attribute: TypeAlias = Union[Scalar, tuple["Attribute", ...]]  # noqa: UP007 (refers to itself)
Attributes: TypeAlias = tuple[tuple[str, Attribute], ...]


@dataclass(frozen=True)
class LayerRecord:
    """One layer (module or cell) of a net, as it stood when the capture began.

    Attributes:
        name: dotted name in the user's net, ``""`` for the net itself.
        type: the class name alone: ``Linear``, ``Dense``.
        api: the full public name: ``torch.nn.Linear``, ``mindspore.nn.Dense``; a user's own class by
            its module and name.
        leaf: True where no layer lies inside.
        training: the train/eval flag.
        attributes: plain attributes by their own names (``eps``, ``momentum``, ``padding`` …), sorted.
        parameters: dotted names of the parameters and buffers that the layer itself owns.
        alias_of: the first name of a layer that is registered under several names, else ``""``.
        unhooked: why the layer's hooks cannot fire, ``""`` where they can.
    """

    name: str
    type: str
    api: str
    leaf: bool
    training: bool
    attributes: Attributes = ()
    parameters: tuple[str, ...] = ()
    alias_of: str = ""
    unhooked: str = ""

    def attribute(self, name: str, default: Attribute = None) -> Attribute:
        """The attribute of that name, or the default."""
        return dict(self.attributes).get(name, default)


@dataclass(frozen=True)
class ParameterRecord:
    """One parameter or buffer, by its dotted name in the user's net.

    Attributes:
        name: dotted name: ``block.bn.weight``, ``block.bn.gamma``.
        layer: the dotted name of the layer that owns it.
        shape: of the tensor.
        dtype: framework-free dtype name.
        trainable: whether it asks for a gradient; False for buffers.
        buffer: True for running statistics and other state that no gradient moves.
        tied_to: the first name of a tensor that is registered under several names, else ``""``.
    """

    name: str
    layer: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    buffer: bool = False
    tied_to: str = ""


@dataclass(frozen=True)
class OptimizerRecord:
    """One optimizer: its class and what it was told.

    Attributes:
        type: class name: ``AdamW``.
        api: full public name.
        groups: per parameter group the hyper-parameters by their own names (numbers and flags only).
        parameters: per group the dotted names of its parameters in the user's net.
    """

    type: str
    api: str
    groups: tuple[Attributes, ...] = ()
    parameters: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Environment:
    """Where and how the run was made.

    Attributes:
        framework: ``torch`` or ``mindspore``.
        version: of the framework.
        device: ``cpu``, ``cuda:0``, ``Ascend`` …
        python: version.
        settings: TF32, autocast, determinism, mode, threads … by name.
        random_state: a digest of the random generators' state at the start, ``""`` if unknown.
        generator: state of the framework's own generator on the host at the start, as hexadecimal
            digits in the framework's form, ``""`` where it cannot be read; a repeated run starts from it.
    """

    framework: str
    version: str
    device: str
    python: str = ""
    settings: Attributes = ()
    random_state: str = ""
    generator: str = ""


@dataclass(frozen=True)
class Taken:
    """What the launcher took for one thing it had to guess: the net, the loss, a batch entry, a step."""

    what: str
    source: str


@dataclass(frozen=True)
class SkippedRecord:
    """A layer or tensor that was seen and not captured, and why; reported, never dropped."""

    name: str
    role: str
    reason: str


@dataclass(frozen=True)
class NoiseRecord:
    """How far one tensor moves by rounding alone, measured on the reference itself.

    Attributes:
        step, phase, role, name, call, slot, micro, rank: the event's key, enumerations by their values.
        spread: largest ‖x_k - x‖ over runs whose given values were perturbed in their last bit,
            None without any.
        exact: ‖x - x64‖ against the same layer in float64 on the same inputs, None where it was not
            computed, or came out as another computation (drawn at random).
        runs: how many perturbed runs there were.
    """

    step: int
    phase: str
    role: str
    name: str
    call: int
    slot: str
    micro: int
    rank: int
    spread: float | None = None
    exact: float | None = None
    runs: int = 0

    @staticmethod
    def of(
        key: EventKey, *, spread: float | None, runs: int, exact: float | None = None
    ) -> NoiseRecord:
        """The record of one event."""
        place = (key.step, key.phase.value, key.role.value, key.name, key.call, key.slot)
        return NoiseRecord(*place, key.micro, key.rank, spread, exact, runs)

    @property
    def key(self) -> EventKey:
        """The event's key."""
        place = (self.name, self.call, self.slot, self.micro, self.rank)
        return EventKey(self.step, Phase(self.phase), Role(self.role), *place)


@dataclass(frozen=True)
class RunRecord:
    """Everything a dump says beside its tensors.

    Attributes:
        complete: False where the run was cut short (killed, or a step raised).
        ended: how it ended, in words, where it was not complete.
        notes: remarks for the report, one sentence each.
        noise: measured noise of single tensors, where it was measured.
    """

    environment: Environment
    layers: tuple[LayerRecord, ...] = ()
    parameters: tuple[ParameterRecord, ...] = ()
    optimizers: tuple[OptimizerRecord, ...] = ()
    skipped: tuple[SkippedRecord, ...] = ()
    taken: tuple[Taken, ...] = ()
    command: str = ""
    created: str = ""
    complete: bool = False
    ended: str = ""
    notes: tuple[str, ...] = ()
    noise: tuple[NoiseRecord, ...] = ()
