"""Nets written in other ways are aligned event by event; what cannot be joined is said to be so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import paritydbg
from paritydbg.align.dumps import align_dumps
from paritydbg.align.user_map import UserMap, read_user_map
from paritydbg.errors import UsageError
from paritydbg.model.event import Role
from paritydbg.model.pair import Alignment


def record(net: nn.Module, path: Path, pieces: int = 1, steps: int = 1) -> None:
    """Forward and backward of one fixed batch, cut into so many pieces."""
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with paritydbg.capture(net, path, optimizer=optimizer):
        for _ in range(steps):
            for piece in x.chunk(pieces):
                net(piece).sum().backward()
            optimizer.step()


def aligned(
    folder: Path, one: nn.Module, other: nn.Module, user: UserMap | None = None
) -> Alignment:
    record(one, folder / "a.h5")
    record(other, folder / "b.h5")
    with paritydbg.open_dump(folder / "a.h5") as a, paritydbg.open_dump(folder / "b.h5") as b:
        return align_dumps(a, b, user_map=user)


def partners(alignment: Alignment) -> dict[str, str]:
    return {pair.reference: pair.port for pair in alignment.layers}


class Named(nn.Module):
    """Two layers and an activation under the given names."""

    def __init__(self, *names: str, functional: bool = False, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.names = names
        self.functional = functional
        setattr(self, names[0], nn.Linear(6, 6))
        setattr(self, names[1], nn.Linear(6, 6))
        if not functional:
            self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = getattr(self, self.names[0])(x)
        x = torch.relu(x) if self.functional else self.act(x)
        return getattr(self, self.names[1])(x)


def test_equal_nets_are_joined_completely_by_name(tmp_path: Path) -> None:
    found = aligned(tmp_path, Named("fc1", "fc2"), Named("fc1", "fc2"))
    assert not found.unpaired
    assert {pair.how for pair in found.layers} == {"name"}


def test_other_names_are_joined_by_the_values_of_parameters(tmp_path: Path) -> None:
    found = aligned(tmp_path, Named("fc1", "fc2"), Named("outward", "inward"))
    assert partners(found)["fc1"] == "outward"
    assert partners(found)["fc2"] == "inward"
    assert not found.unpaired


def test_crossed_names_with_equal_values_stay_with_their_names(tmp_path: Path) -> None:
    found = aligned(tmp_path, Named("fc1", "fc2"), Named("fc1", "fc2", seed=1))
    assert partners(found)["fc1"] == "fc1"


def test_a_function_for_a_layer_leaves_only_that_layer_alone(tmp_path: Path) -> None:
    found = aligned(tmp_path, Named("fc1", "fc2"), Named("fc1", "fc2", functional=True))
    assert found.lone_reference == ("act",)
    assert {one.event.key.name for one in found.unpaired} == {"act"}


def test_one_layer_three_times_meets_three_layers(tmp_path: Path) -> None:
    class Many(nn.Module):
        def __init__(self, shared: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
            self.acts = nn.ModuleList(nn.ReLU() for _ in range(1 if shared else 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for number, layer in enumerate(self.layers):
                x = self.acts[number % len(self.acts)](layer(x))
            return x

    found = aligned(tmp_path, Many(True), Many(False))
    outputs = {
        (pair.first.key.place, pair.port[0].key.place)
        for pair in found.events
        if pair.first.key.role is Role.OUTPUT and "acts" in pair.first.key.name
    }
    assert outputs == {("acts.0", "acts.0"), ("acts.0#1", "acts.1"), ("acts.0#2", "acts.2")}


def test_a_wrapper_around_the_net_does_not_matter(tmp_path: Path) -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = Named("fc1", "fc2")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.model(x)

    found = aligned(tmp_path, Named("fc1", "fc2"), Wrapped())
    assert partners(found)["fc1"] == "model.fc1"
    assert partners(found)["act"] == "model.act"


def test_the_users_map_and_rename_rules_win(tmp_path: Path) -> None:
    one, other = Named("fc1", "fc2"), Named("a", "b", seed=1)
    by_map = aligned(tmp_path, one, other, UserMap(layers=(("fc1", "b"), ("fc2", "a"))))
    assert partners(by_map)["fc1"] == "b"
    assert {p.how for p in by_map.layers if p.reference == "fc1"} == {"map"}
    (tmp_path / "2").mkdir()
    by_rule = aligned(tmp_path / "2", one, other, UserMap(rename=(("fc1", "b"), ("fc2", "a"))))
    assert partners(by_rule)["fc2"] == "a"


def test_a_name_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has not; closest: fc"):
        aligned(tmp_path, Named("fc1", "fc2"), Named("a", "b"), UserMap(layers=(("fc", "a"),)))


def test_a_batch_cut_into_micro_batches_is_joined_piece_by_piece(tmp_path: Path) -> None:
    record(Named("fc1", "fc2"), tmp_path / "a.h5")
    record(Named("fc1", "fc2"), tmp_path / "b.h5", pieces=2)
    with (
        paritydbg.open_dump(tmp_path / "a.h5") as a,
        paritydbg.open_dump(tmp_path / "b.h5") as b,
    ):
        found = align_dumps(a, b)
    (output,) = [
        pair
        for pair in found.events
        if pair.first.key.role is Role.OUTPUT and pair.first.key.name == "fc2"
    ]
    assert [event.shape for event in output.port] == [(4, 6), (4, 6)]
    assert output.transform.kind == "split"
    reasons = {one.reason for one in found.unpaired}
    assert "the two sides cut the batch into different micro-batches" in reasons


def test_steps_of_one_side_alone_are_named_as_such(tmp_path: Path) -> None:
    record(Named("fc1", "fc2"), tmp_path / "a.h5", steps=2)
    record(Named("fc1", "fc2"), tmp_path / "b.h5", steps=1)
    with (
        paritydbg.open_dump(tmp_path / "a.h5") as a,
        paritydbg.open_dump(tmp_path / "b.h5") as b,
    ):
        found = align_dumps(a, b)
    assert {one.reason for one in found.unpaired} == {"only one side has this step"}
    assert {one.event.key.step for one in found.unpaired} == {2}


@pytest.mark.parametrize("ending", ["yaml", "toml"])
def test_a_map_file_is_read_in_both_forms(tmp_path: Path, ending: str) -> None:
    texts = {
        "yaml": "layers: {a.b: c}\nparameters: {w: v}\nrename: [[x, y]]\n",
        "toml": 'rename = [["x", "y"]]\n[layers]\n"a.b" = "c"\n[parameters]\nw = "v"\n',
    }
    path = tmp_path / f"map.{ending}"
    path.write_text(texts[ending])
    assert read_user_map(path) == UserMap((("a.b", "c"),), (("w", "v"),), (("x", "y"),))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("layers: [1]", "must map"),
        ("sides: {}", "unknown entry"),
        ("- a", "holds no table"),
        ("layers: {a: [", "is no YAML"),
        ("rename: [[a]]", "is not"),
        ("!!python/object/apply:os.system [echo]", "is no YAML"),
    ],
)
def test_a_bad_map_file_is_one_clear_error(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        read_user_map(path)
    assert "\n" not in str(caught.value)
