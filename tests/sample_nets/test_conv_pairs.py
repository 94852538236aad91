"""The convolutional sample pairs: clean ports agree with the reference, faults act as they say."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import mindspore
import numpy as np
import pytest
import torch

from sample_nets import NAMES
from sample_nets.fault import Fault

PAIRS = ("lenet5", "resnet50", "unet")
OWNERS = {"downsample": "down_sample_layer", "head": "classifier"}
# Rounding alone can flip a single ReLU of many, which moves the gradients before it by some percent;
# ResNet-50 has half a million, LeNet-5 so few that a flip is not to be expected.
GRADIENT_LIMITS = {"lenet5": 1e-4, "resnet50": 0.2, "unet": 0.05}
ROOT = Path(__file__).resolve().parents[2]


def part(pair: str, name: str) -> ModuleType:
    return importlib.import_module(f"sample_nets.{pair}.{name}")


def faults_of(pair: str) -> tuple[Fault, ...]:
    faults: tuple[Fault, ...] = part(pair, "faults").FAULTS
    return faults


def port_name(name: str, known: dict[str, mindspore.Parameter]) -> str:
    *owners, leaf = name.split(".")
    owner = ".".join(OWNERS.get(each, each) for each in owners)
    leaf = {"running_mean": "moving_mean", "running_var": "moving_variance"}.get(leaf, leaf)
    if f"{owner}.{leaf}" not in known:
        leaf = {"weight": "gamma", "bias": "beta"}.get(leaf, leaf)
    return f"{owner}.{leaf}"


def copy_weights(net: torch.nn.Module, port: mindspore.nn.Cell) -> set[str]:
    """The reference's names that the port lacks; all others are copied into it."""
    known = dict(port.parameters_and_names())
    missing = set()
    for name, value in net.state_dict().items():
        target = known.get(port_name(name, known))
        if target is not None:
            target.set_data(mindspore.Tensor(value.numpy().copy()))
        elif not name.endswith("num_batches_tracked"):
            missing.add(name)
    return missing


class Run:
    """Both sides of a pair on the same weights: losses, gradients of step 1, parameters after."""

    def __init__(self, pair: str, fault: str | None = None, steps: int = 1) -> None:
        self.pair = pair
        torch.set_num_threads(1)
        torch.manual_seed(3)
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        torch_net, port_module = part(pair, "torch_net"), part(pair, "mindspore_net")
        self.net = torch_net.make_net()
        self.port = port_module.make_net(fault)
        self.port.set_train()
        self.missing = copy_weights(self.net, self.port)
        known = dict(self.port.parameters_and_names())
        self.names = {name: port_name(name, known) for name in self.net.state_dict()}
        self.losses: list[tuple[float, float]] = []
        optimizer = torch_net.make_optimizer(self.net)
        port_optimizer = port_module.make_optimizer(self.port, fault)
        self.missing_gradients: set[str] = set()
        self.gradient_gap: dict[str, float] = {}

        def forward(batch: dict[str, mindspore.Tensor]) -> mindspore.Tensor:
            return port_module.loss(self.port, batch, fault)

        gradient_of = mindspore.value_and_grad(forward, None, port_optimizer.parameters)
        for step in range(1, steps + 1):
            batch = part(pair, "data").batch(step)
            optimizer.zero_grad()
            loss = torch_net.loss(self.net, {k: torch.from_numpy(v) for k, v in batch.items()})
            loss.backward()
            port_loss, gradients = gradient_of({k: mindspore.Tensor(v) for k, v in batch.items()})
            self.losses.append((loss.item(), float(port_loss.asnumpy())))
            if step == 1:
                self._compare_gradients(port_optimizer.parameters, gradients)
            optimizer.step()
            port_optimizer(gradients)

    def _compare_gradients(self, parameters: object, gradients: object) -> None:
        owner = {id(value): name for name, value in self.port.parameters_and_names()}
        found = {owner[id(p)]: g.asnumpy() for p, g in zip(parameters, gradients, strict=True)}
        for name, parameter in self.net.named_parameters():
            if self.names[name] in found:
                reference = parameter.grad.numpy()
                self.gradient_gap[name] = relative_gap(reference, found[self.names[name]])
            else:
                self.missing_gradients.add(name)

    def loss_gap(self) -> float:
        return max(abs(a - b) / abs(a) for a, b in self.losses)

    def state_gap(self, *suffixes: str) -> float:
        """The largest gap of the reference's values whose names end so, after the last step."""
        values = {n: v.asnumpy() for n, v in self.port.parameters_and_names()}
        return max(
            relative_gap(value.numpy(), values[self.names[name]])
            for name, value in self.net.state_dict().items()
            if name.endswith(suffixes) and self.names[name] in values
        )


def relative_gap(reference: np.ndarray, other: np.ndarray) -> float:
    """The relative L2 distance in float64; infinite where only the reference is zero."""
    distance = np.linalg.norm(reference.astype(np.float64) - other)
    if distance == 0.0:
        return 0.0
    return float(distance / np.linalg.norm(reference.astype(np.float64)))


@pytest.fixture(scope="module", params=PAIRS)
def clean(request: pytest.FixtureRequest) -> Run:
    return Run(request.param, steps=2)


def test_clean_port_takes_every_weight(clean: Run) -> None:
    assert clean.missing == set()
    assert clean.missing_gradients == set()
    assert len(list(clean.port.trainable_params())) == len(list(clean.net.parameters()))


def test_clean_losses_agree_over_two_steps(clean: Run) -> None:
    assert len(clean.losses) == 2
    assert clean.losses[0][0] != clean.losses[1][0]
    assert abs(clean.losses[0][0] / clean.losses[0][1] - 1.0) < 2e-6
    assert clean.loss_gap() < 1e-3


def test_clean_gradients_updates_and_statistics_agree(clean: Run) -> None:
    assert max(clean.gradient_gap.values()) < GRADIENT_LIMITS[clean.pair]
    assert clean.state_gap("weight", "bias") < GRADIENT_LIMITS[clean.pair]
    if clean.pair != "lenet5":
        assert clean.state_gap("running_mean", "running_var") < 1e-2


@pytest.mark.parametrize("pair", PAIRS)
def test_batches_are_deterministic_and_differ_by_step(pair: str) -> None:
    batch, again, later = (part(pair, "data").batch(step) for step in (1, 1, 2))
    assert all(np.array_equal(batch[key], again[key]) for key in batch)
    assert not any(np.array_equal(batch[key], later[key]) for key in batch)
    assert {value.dtype.name for value in batch.values()} == {"float32", "int32"}


@pytest.mark.parametrize("pair", PAIRS)
def test_faults_are_of_many_kinds(pair: str) -> None:
    faults = faults_of(pair)
    assert len({fault.name for fault in faults}) == len(faults) >= 6
    assert sum(fault.silent for fault in faults) >= 2
    assert sum(fault.backward_only for fault in faults) >= 2
    assert all(fault.first and fault.summary.endswith(".") for fault in faults)


@pytest.mark.parametrize("pair", PAIRS)
def test_unknown_fault_is_refused_with_the_known_ones(pair: str) -> None:
    with pytest.raises(ValueError, match=f"'nonsense'.*{faults_of(pair)[-1].name}"):
        part(pair, "mindspore_net").make_net("nonsense")


@pytest.mark.parametrize("pair", PAIRS)
def test_named_layers_and_parameters_exist_in_the_reference(pair: str) -> None:
    net = part(pair, "torch_net").make_net()
    known = {name for name, _ in net.named_modules()} | set(net.state_dict())
    for fault in faults_of(pair):
        places = {place.split("#")[0] for place in fault.first}
        layers = {p for p in places if not p.startswith(("inputs", "step", "loss", "(net)"))}
        assert layers <= known, fault.name


@pytest.mark.parametrize(
    ("pair", "fault"),
    [(pair, fault.name) for pair in ("resnet50", "unet") for fault in faults_of(pair)],
)
def test_faulty_net_builds(pair: str, fault: str) -> None:
    assert list(part(pair, "mindspore_net").make_net(fault).trainable_params())


@pytest.mark.parametrize("fault", faults_of("lenet5"), ids=lambda fault: fault.name)
def test_lenet5_fault_changes_what_it_says(fault: Fault) -> None:
    run = Run("lenet5", fault.name)
    gap, worst_gradient = run.loss_gap(), max(run.gradient_gap.values())
    if fault.stage == "update":
        assert gap < 1e-6
        assert worst_gradient < 1e-5
        assert run.state_gap("weight", "bias") > 1e-4
    elif fault.cause == "parameter-frozen":
        assert gap < 1e-6
        assert run.missing_gradients == {"conv1.weight"}
    elif fault.backward_only:
        assert gap < 1e-6
        assert worst_gradient > 0.1
    else:
        assert gap > 5e-6
        assert worst_gradient > 1e-2
    assert run.missing == ({"conv2.bias"} if fault.name == "conv-bias-missing" else set())


def run_script(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_scripts_train_and_print_a_loss_a_step() -> None:
    for script in ("train_torch.py", "train_mindspore.py"):
        lines = run_script(f"scripts/{script}", "lenet5", "--steps", "2").splitlines()
        assert [line.split()[:3] for line in lines] == [["step", str(n), "loss"] for n in (1, 2)]
        assert all(0.0 < float(line.split()[3]) < 5.0 for line in lines)


@pytest.mark.parametrize("mode", ["train_one_step", "model"])
def test_mindspore_modes_train_alike(mode: str) -> None:
    command = ("scripts/train_mindspore.py", "lenet5", "--steps", "2", "--fault", "flatten-order")
    assert run_script(*command, "--mode", mode) == run_script(*command)


def test_scripts_import_nothing_of_the_tool() -> None:
    for script in ("train_torch.py", "train_mindspore.py"):
        imports = [
            line
            for line in (ROOT / "scripts" / script).read_text().splitlines()
            if line.lstrip().startswith(("import ", "from "))
        ]
        assert imports
        assert not any("paritydbg" in line for line in imports)


def test_pairs_bear_the_names_of_their_folders() -> None:
    assert set(PAIRS) <= set(NAMES)
