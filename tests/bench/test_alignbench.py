"""The alignment bench: what is true of a mutation, how pairs are judged, and a run on small nets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from alignbed import blocks, leaves, names
from alignbed.judge import align_and_judge
from alignbed.mutations import MUTATIONS, Mutation
from alignbed.record import change_weights, make_net, record
from alignbed.rewiring import mark, origin
from alignbench import outcomes


def marked(sample: str) -> nn.Module:
    net = make_net(sample)
    mark(net)
    return net


def mutation(name: str) -> Mutation:
    (found,) = (one for one in MUTATIONS if one.name == name)
    return found


def origins(net: nn.Module) -> dict[str, str | None]:
    return {name: origin(layer).layer for name, layer in net.named_modules()}


def test_mutations_have_names_of_their_own() -> None:
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS)


def test_made_up_names_keep_their_origin_and_say_nothing() -> None:
    found = origins(names.arbitrary(marked("lenet5"), {}))
    assert set(found.values()) == set(origins(make_net("lenet5")))
    assert not {name for name, layer in found.items() if name and name == layer}


def test_a_missing_block_shifts_the_numbers_behind_it() -> None:
    net = blocks.missing(None)(marked("llama"), {})
    assert net is not None
    found = origins(net)
    assert found["layers.1"] == "layers.1"
    assert found["layers.2"] == "layers.3"
    assert "layers.3" not in found


def test_a_fused_projection_tells_what_it_is_made_of() -> None:
    net = leaves.fused("")(marked("llama"), {})
    assert net is not None
    whole = origin(net.get_submodule("layers.0.self_attn.qkv_proj"))
    assert whole.layer is None
    assert whole.parameters["weight"] == tuple(
        f"layers.0.self_attn.{part}_proj.weight" for part in "qkv"
    )


@pytest.mark.parametrize(
    "name",
    ["renamed", "defined in reverse", "a layer for every call", "identities", "two wrappers"],
)
def test_a_mutated_net_computes_the_same(name: str, tmp_path: Path) -> None:
    import torch

    reference = marked("lenet5")
    calls = record(reference, "lenet5", tmp_path / "a.h5", 1).calls()
    port = mutation(name).port(reference, calls)
    assert port is not None
    x = torch.randn(2, 1, 28, 28)
    torch.testing.assert_close(port(x), reference(x))


def test_wrong_pairs_are_counted_as_such(tmp_path: Path) -> None:
    from alignbed.ground_truth import truth_of

    reference = marked("lenet5")
    mine = record(reference, "lenet5", tmp_path / "a.h5", 1)
    port = marked("lenet5")
    change_weights(port)
    # A truth in which two layers have changed places.
    places = {"fc2": "fc3", "fc3": "fc2"}
    for name in places:
        port.get_submodule(name)._bed_origin = origin(reference.get_submodule(places[name]))
    yours = record(port, "lenet5", tmp_path / "b.h5", 1)
    judged = align_and_judge(mine.dump, yours.dump, truth_of(mine, yours))
    assert judged.layers.wrong == judged.layers.true - judged.layers.found == 2
    assert judged.calls.wrong == 2
    assert "fc2#0 = fc2#0" in judged.calls.wrong_pairs
    assert not judged.perfect


@pytest.mark.parametrize("weights", ["equal", "different"])
def test_small_nets_are_aligned_without_a_fault(weights: str) -> None:
    chosen = ("renamed leaves", "functional activations", "two passes", "wrapper")
    for outcome in outcomes(("lenet5",), (weights,), chosen):
        assert not outcome.error
        assert outcome.judgement.perfect, (outcome.mutation, outcome.judgement)


def test_the_command_prints_a_table_and_totals(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, str(ROOT / "scripts" / "alignbench.py"), "--net", "lenet5"]
    done = subprocess.run(
        [*command, "-k", "folded", "-k", "same", "--json", str(out)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "2 outcomes, 2 without a fault, 0 that failed" in done.stdout
    report = json.loads(out.read_text())
    assert report["totals"]["all"]["layers"] == {"found": 36, "true": 36, "wrong": 0}
    assert [one["weights"] for one in report["outcomes"]] == ["equal", "different"]
