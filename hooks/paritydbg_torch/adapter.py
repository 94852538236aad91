"""The adapter: what the core asks of PyTorch, each answer in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray

from paritydbg.adapters import Recorder
from paritydbg.model.event import Values
from paritydbg.model.record import Environment, LayerRecord, OptimizerRecord, ParameterRecord
from paritydbg.model.trial import Trial, TrialResult
from paritydbg_torch import environment, structure, values, weights
from paritydbg_torch.recorder import TorchRecorder

if TYPE_CHECKING:
    from paritydbg.session.launch import Launch
    from paritydbg.session.recording import Recording


class TorchAdapter:
    """PyTorch, as the core sees it."""

    name = "torch"

    def owns(self, net: object) -> bool:
        """Whether the object is a torch module."""
        return isinstance(net, torch.nn.Module)

    def environment(self) -> Environment:
        """Version, device, settings and random state as they stand now."""
        return environment.environment()

    def values(self, tensor: object) -> Values | None:
        """A copy of a tensor's, array's or number's values, else None."""
        return values.values_of(tensor)

    def structure(
        self, nets: Mapping[str, object]
    ) -> tuple[tuple[LayerRecord, ...], tuple[ParameterRecord, ...]]:
        """Layers, and parameters and buffers, in order of registration."""
        return structure.layer_records(nets), structure.parameter_records(nets)

    def optimizer_record(self, optimizer: object, nets: Mapping[str, object]) -> OptimizerRecord:
        """The optimizer's class and hyper-parameters."""
        return structure.optimizer_record(optimizer, nets)

    def recorder(
        self, nets: Mapping[str, object], optimizers: Sequence[object], recording: Recording
    ) -> Recorder:
        """Hooks for these nets and optimizers, not attached yet."""
        return TorchRecorder(nets, optimizers, recording)

    def launch(self, launch: Launch) -> None:
        """Patch torch so that a script is captured by itself."""
        from paritydbg_torch.launch import patch

        patch(launch)

    def read_parameters(self, net: object) -> Mapping[str, NDArray[Any]]:
        """Every parameter and buffer by dotted name."""
        return weights.read_parameters(net)

    def write_parameters(self, net: object, values: Mapping[str, NDArray[Any]]) -> None:
        """Write values into the net in place."""
        weights.write_parameters(net, values)

    def read_weights_file(self, path: str) -> Mapping[str, NDArray[Any]]:
        """The tensors of a .pth or .pt file; nothing in it is executed."""
        return weights.read_weights_file(path)

    def write_weights_file(self, path: str, net: object) -> None:
        """Save the net's state dict, atomically."""
        weights.write_weights_file(path, net)

    def run_trial(self, trial: Trial) -> TrialResult:
        """What one layer or optimizer gives on the trial's tensors."""
        from paritydbg_torch.trials import run_trial

        return run_trial(trial)

    def api_exists(self, api: str) -> bool:
        """Whether the installed torch has the API of that full name."""
        module, _, name = api.rpartition(".")
        try:
            found: Any = import_module(module)
        except ImportError:
            owner, _, attribute = module.rpartition(".")
            try:
                found = getattr(import_module(owner), attribute, None)
            except ImportError:
                return False
        return hasattr(found, name)


ADAPTER = TorchAdapter()
