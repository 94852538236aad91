"""Weights go from torch into MindSpore and back, on every sample pair and in every kind of file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import paritydbg
from paritydbg.errors import WeightsError
from paritydbg.weights.files import read_weights
from sample_nets import NAMES

# A counter that no other framework keeps.
COUNTER = "num_batches_tracked"


def values_of(net: torch.nn.Module) -> dict[str, Any]:
    return {name: value.numpy().copy() for name, value in net.state_dict().items()}


@pytest.mark.parametrize("pair", NAMES)
def test_every_sample_pair_survives_the_way_there_and_back(pair: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    reference = import_module(f"sample_nets.{pair}.torch_net").make_net()
    with torch.no_grad():
        for buffer in reference.buffers():
            if buffer.is_floating_point():
                buffer.add_(0.25)
    start = values_of(reference)
    port = import_module(f"sample_nets.{pair}.mindspore_net").make_net(None)
    there = paritydbg.transplant(start, port, tmp_path / "port.ckpt")
    assert not there.left_in_port
    assert {name.rpartition(".")[2] for name in there.left_in_reference} <= {COUNTER}
    torch.manual_seed(2)
    other = import_module(f"sample_nets.{pair}.torch_net").make_net()
    back = paritydbg.transplant(tmp_path / "port.ckpt", other)
    # Counters, and constant buffers that a MindSpore checkpoint does not keep.
    assert set(back.left_in_port) <= {name for name, _ in other.named_buffers()}
    for name, value in values_of(other).items():
        if name not in back.left_in_port:
            assert np.array_equal(value, start[name]), name


def small() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2)
    )


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".pth", ".h5"])
def test_every_kind_of_file_fills_a_port(tmp_path: Path, ending: str) -> None:
    net = small()
    values = values_of(net)
    path = tmp_path / f"w{ending}"
    if ending == ".npz":
        np.savez(path, **values)
    elif ending == ".safetensors":
        save_file(values, path)
    elif ending == ".pth":
        torch.save(net.state_dict(), path)
    else:
        with paritydbg.capture(net.eval(), path):
            net(torch.ones(2, 4))
    port = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.BatchNorm1d(3), ms.nn.Dense(3, 2))
    moved = paritydbg.transplant(path, port)
    assert ("1.weight", "1.gamma") in moved.renamed
    assert not moved.left_in_port
    assert np.array_equal(port[1].gamma.asnumpy(), values["1.weight"])
    assert np.array_equal(port[1].moving_variance.asnumpy(), values["1.running_var"])


def test_layouts_that_differ_are_changed_and_told(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv1d(3, 5, 2))
    port = ms.nn.SequentialCell(ms.nn.Conv1d(3, 5, 2, pad_mode="valid", has_bias=True))
    moved = paritydbg.transplant(values_of(net), port)
    ((old, new, done),) = moved.reshaped
    assert (old, new) == ("0.weight", "0.weight")
    assert "(5, 3, 1, 2)" in done
    assert np.array_equal(port[0].weight.asnumpy()[:, :, 0], net[0].weight.detach().numpy())


def test_a_shape_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    port = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.BatchNorm1d(3), ms.nn.Dense(3, 5))
    before = [p.asnumpy().copy() for p in port.get_parameters()]
    with pytest.raises(WeightsError, match=r"\(2, 3\).*\(5, 3\)"):
        paritydbg.transplant(values_of(small()), port, tmp_path / "port.ckpt")
    after = [p.asnumpy() for p in port.get_parameters()]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert not (tmp_path / "port.ckpt").exists()


class Payload:
    """Would make a file if it were unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


@pytest.mark.parametrize(
    "kind",
    ["missing", "empty", "folder", "text.pth", "pickle.pth", "object.npz", "object.npy", "text.npz"]
    + ["short.safetensors", "huge.safetensors", "text.ckpt", "text.h5", "unknown.bin2"],
)
def test_a_hostile_or_broken_file_is_one_line_and_nothing_runs(tmp_path: Path, kind: str) -> None:
    path, made = tmp_path / kind, tmp_path / "made"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pickle.pth":
        torch.save({"w": Payload(made)}, path)
    elif kind == "object.npz":
        np.savez(path, w=np.array([Payload(made)], dtype=object))
    elif kind == "object.npy":
        np.save(path, np.array([Payload(made)], dtype=object), allow_pickle=True)
    elif kind == "short.safetensors":
        path.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{")
    elif kind == "huge.safetensors":
        path.write_bytes((1 << 62).to_bytes(8, "little") + b"{}")
    elif kind != "missing":
        path.write_text("hello, this is no weights file at all")
    with pytest.raises(WeightsError) as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)
    assert not made.exists()
