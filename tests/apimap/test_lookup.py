"""The mapping tables as values: finding entries by the names that people write, and what they hold."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from paritydbg.apimap.lookup import conventions, family, lookup, mindspore_apis, similar
from paritydbg.apimap.tables import entries
from paritydbg.cli.apimap import command
from paritydbg.errors import UsageError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("torch.nn.LayerNorm", "torch.nn.LayerNorm"),
        ("nn.LayerNorm", "torch.nn.LayerNorm"),
        ("LayerNorm", "torch.nn.LayerNorm"),
        ("F.gelu", "torch.nn.functional.gelu"),
        ("functional.gelu", "torch.nn.functional.gelu"),
        ("optim.AdamW", "torch.optim.AdamW"),
        ("nn.layernorm", "torch.nn.LayerNorm"),
        ("nn.Linear()", "torch.nn.Linear"),
    ],
)
def test_short_names_are_understood(written: str, meant: str) -> None:
    entry = lookup(written)
    assert entry is not None
    assert entry.torch_api == meant


def test_an_unknown_name_has_no_entry_and_similar_ones_come_nearest_first() -> None:
    assert lookup("nn.LayrNorm") is None
    assert similar("nn.LayrNorm")[0] == "torch.nn.LayerNorm"
    assert similar("zzzzzzzz") == ()


def test_layers_of_both_frameworks_have_one_family_and_own_classes_have_none() -> None:
    assert {family(n) for n in ("mindspore.nn.Dense", "Dense", "torch.nn.Linear")} == {"Linear"}
    assert family("mindspore.mint.nn.LayerNormExt") == "LayerNorm"
    assert family("mine.nets.Linear") == ""


def test_what_matched_on_the_cpu_comes_before_what_has_no_kernel() -> None:
    apis = mindspore_apis("LayerNorm")
    assert apis.index("mindspore.nn.LayerNorm") < apis.index("mindspore.mint.nn.LayerNorm")


def test_defaults_that_differ_are_read_with_both_names() -> None:
    entry = lookup("nn.LayerNorm")
    assert entry is not None
    found = entry.alternative("mindspore.nn.LayerNorm")
    assert found is not None
    assert [(d.mindspore_parameter, d.mindspore_default) for d in found.defaults] == [
        ("epsilon", "1e-07")
    ]


def test_conventions_tell_the_conversion_and_what_goes_wrong_without() -> None:
    found = [c for c in conventions("nn.BatchNorm2d") if c.torch_parameter == "momentum"]
    assert found[0].verified
    assert "1 - momentum" in found[0].conversion
    assert conventions("no.such.api") == ()


def test_every_row_has_a_name_and_no_alternative_twice() -> None:
    assert len(entries()) > 1500
    for name, entry in entries().items():
        apis = [a.api for a in entry.alternatives]
        assert name == entry.torch_api
        assert len(apis) == len(set(apis))
        assert all(api.startswith("mindspore.") for api in apis)


def test_the_command_prints_the_defaults_that_differ() -> None:
    done = CliRunner().invoke(command, ["nn.LayerNorm"], standalone_mode=False)
    assert done.exception is None
    assert "epsilon defaults to 1e-07" in done.output
    assert "mindspore.nn.LayerNorm" in done.output


def test_the_command_prints_json_on_demand() -> None:
    done = CliRunner().invoke(command, ["F.gelu", "--json"], standalone_mode=False)
    assert json.loads(done.output)["torch_api"] == "torch.nn.functional.gelu"


def test_the_command_refuses_an_unknown_name_with_what_comes_near() -> None:
    done = CliRunner().invoke(command, ["nn.LayrNorm"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "did you mean torch.nn.LayerNorm" in str(done.exception)
