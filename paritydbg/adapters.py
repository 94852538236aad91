"""What a hook package gives to the core, and how the core finds it; no framework is imported here.

A hook package registers an object that fulfils `Adapter` in the entry-point group
``paritydbg.hooks``. It is imported when a net of its framework is at hand or its framework is asked
for by name, never before.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from paritydbg.errors import AdapterError, UsageError
from paritydbg.model.event import Values
from paritydbg.model.record import Environment, LayerRecord, OptimizerRecord, ParameterRecord
from paritydbg.model.trial import Trial, TrialResult

if TYPE_CHECKING:  # for signatures only: the core's steps build on this module
    from paritydbg.session.launch import Launch
    from paritydbg.session.recording import Recording

GROUP = "paritydbg.hooks"


class Recorder(Protocol):
    """Hooks on the nets of one capture; everything they see goes to the recording they were given."""

    def attach(self) -> None:
        """Put the hooks in. Layers whose hooks cannot fire are reported to the recording."""

    def detach(self) -> None:
        """Take every hook out again; may be called twice, and after an exception in a step."""

    def step_begins(self) -> None:
        """Record parameters and buffers before the step, and the optimizers' state values (``lr`` …)."""

    def step_ends(self) -> None:
        """Record parameters (where an optimizer is known) and buffers after the step."""


@runtime_checkable
class Adapter(Protocol):
    """One framework, as the core sees it. No method runs a framework operator inside a hook."""

    name: str
    """``torch`` or ``mindspore``, the name of the framework's package."""

    def owns(self, net: object) -> bool:
        """Whether the object is a layer of this framework."""

    def environment(self) -> Environment:
        """Version, device, determinism, precision settings and random state, as they stand now."""

    def values(self, tensor: object) -> Values | None:
        """A copy of the values of a tensor, array or plain number, or None for anything else."""

    def structure(
        self, nets: Mapping[str, object]
    ) -> tuple[tuple[LayerRecord, ...], tuple[ParameterRecord, ...]]:
        """Layers, and parameters and buffers, of the nets in order of registration.

        ``nets`` maps a prefix (``""`` for a lone net) to a net; names are ``prefix.name``.
        """

    def optimizer_record(self, optimizer: object, nets: Mapping[str, object]) -> OptimizerRecord:
        """Class and hyper-parameters, with parameter names as in ``structure``."""

    def recorder(
        self, nets: Mapping[str, object], optimizers: Sequence[object], recording: Recording
    ) -> Recorder:
        """Hooks for these nets and optimizers, not attached yet."""

    def launch(self, launch: Launch) -> None:
        """Patch the framework, which is imported by now, so that a script is captured by itself."""

    def read_parameters(self, net: object) -> Mapping[str, NDArray[Any]]:
        """Every parameter and buffer by dotted name; bfloat16 comes as float32."""

    def write_parameters(self, net: object, values: Mapping[str, NDArray[Any]]) -> None:
        """Write values into the net's parameters and buffers of these names, shapes equal, in place.

        Raises:
            WeightsError: a name that the net lacks or another shape; nothing is written then.
        """

    def read_weights_file(self, path: str) -> Mapping[str, NDArray[Any]]:
        """The tensors of a weights file in the framework's own format; nothing in it is executed.

        Raises:
            WeightsError: not such a file, truncated, or holding more than tensors.
        """

    def write_weights_file(self, path: str, net: object) -> None:
        """Save the net's parameters and buffers in the framework's own format, atomically."""

    def run_trial(self, trial: Trial) -> TrialResult:
        """What one layer or optimizer of the framework gives on the trial's tensors.

        Raises:
            UsageError: the trial names no API of this framework. Whatever else the framework raises is
                passed on: it is the trial's result.
        """

    def api_exists(self, api: str) -> bool:
        """Whether the installed framework has the API of that full name."""


def adapter_names() -> tuple[str, ...]:
    """The names of all hook packages that are installed, whether or not their framework is."""
    return tuple(sorted(point.name for point in metadata.entry_points(group=GROUP)))


def load_adapter(name: str) -> Adapter:
    """The adapter of that framework.

    Raises:
        UsageError: no hook package of that name.
        AdapterError: its framework cannot be imported.
    """
    for point in metadata.entry_points(group=GROUP):
        if point.name == name:
            try:
                loaded = point.load()
            except ImportError as error:
                raise AdapterError(
                    f"{name} cannot be imported here ({error}); install it: pip install "
                    f"'paritydbg[{name}]'"
                ) from error
            if not isinstance(loaded, Adapter):
                raise AdapterError(
                    f"the hook package {point.value} does not fulfil the adapter protocol"
                )
            return loaded
    known = ", ".join(adapter_names()) or "none"
    raise UsageError(f"no hook package for {name!r} is installed; installed: {known}")


def adapter_for(net: object) -> Adapter:
    """The adapter whose framework the net belongs to.

    Raises:
        UsageError: no installed hook package knows this kind of object.
    """
    for name in adapter_names():
        # A net of a framework cannot exist before its package was imported.
        if name in sys.modules:
            adapter = load_adapter(name)
            if adapter.owns(net):
                return adapter
    raise UsageError(
        f"{type(net).__module__}.{type(net).__name__} is no net of a known framework; give a "
        "torch.nn.Module or a mindspore.nn.Cell"
    )
