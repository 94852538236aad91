"""Candidates: MindSpore code with the reference's own values, and nothing that cannot run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paritydbg.explain.candidate_code import code_for, optimizer_code
from paritydbg.explain.candidates import candidates
from paritydbg.model.comparison import Verdict
from paritydbg.model.event import Role
from paritydbg.model.finding import Candidate, Cause, Finding, Stage
from paritydbg.model.record import LayerRecord, OptimizerRecord
from tests.explain.memory_run import MemoryRun, context_of

CODE: dict[str, tuple[str, str, tuple[str, ...], dict[str, Any]]] = {
    "nn.LayerNorm((64,), epsilon=1e-05)": (
        "LayerNorm",
        "LayerNorm",
        (),
        {"normalized_shape": (64,), "eps": 1e-5},
    ),
    "nn.LayerNorm((4, 5), begin_norm_axis=1, begin_params_axis=1, epsilon=1e-05)": (
        "LayerNorm",
        "LayerNorm",
        (),
        {"normalized_shape": (4, 5), "eps": 1e-5},
    ),
    "nn.Conv2d(3, 8, 3, pad_mode='pad', padding=1, has_bias=True)": (
        "Conv2d",
        "Conv2d",
        ("weight", "bias"),
        {"in_channels": 3, "out_channels": 8, "kernel_size": (3, 3), "padding": (1, 1)},
    ),
    "nn.Conv2d(4, 8, 3, stride=2, pad_mode='pad', padding=(1, 1, 2, 2), group=2, has_bias=False)": (
        "Conv2d",
        "Conv2d",
        ("weight",),
        {
            "in_channels": 4,
            "out_channels": 8,
            "kernel_size": (3, 3),
            "stride": (2, 2),
            "padding": (1, 2),
            "groups": 2,
        },
    ),
    "nn.Conv2dTranspose(3, 4, 3, stride=2, pad_mode='pad', padding=(1, 0, 1, 0), has_bias=True)": (
        "ConvTranspose2d",
        "Conv2dTranspose",
        ("weight", "bias"),
        {
            "in_channels": 3,
            "out_channels": 4,
            "kernel_size": (3, 3),
            "stride": (2, 2),
            "padding": (1, 1),
            "output_padding": (1, 1),
        },
    ),
    "nn.MaxPool2d(2, stride=2, pad_mode='valid')": (
        "MaxPool2d",
        "MaxPool2d",
        (),
        {"kernel_size": 2, "stride": 2, "padding": 0},
    ),
    "nn.BatchNorm2d(4, eps=1e-05, momentum=0.9)": (
        "BatchNorm2d",
        "BatchNorm2d",
        (),
        {"num_features": 4, "eps": 1e-5, "momentum": 0.1, "affine": True},
    ),
    "nn.GELU(approximate=False)": ("GELU", "GELU", (), {"approximate": "none"}),
    "nn.LeakyReLU(alpha=0.01)": ("LeakyReLU", "LeakyReLU", (), {"negative_slope": 0.01}),
    "nn.Dropout(p=0.1)": ("Dropout", "Dropout", (), {"p": 0.1}),
    "mint.nn.Linear(3, 4, bias=False)": (
        "Linear",
        "mint.nn.Linear",
        ("weight",),
        {"in_features": 3, "out_features": 4},
    ),
}


@pytest.mark.parametrize("code", CODE)
def test_code_holds_the_layers_values_in_mindspores_conventions(code: str) -> None:
    kind, api, parameters, attributes = CODE[code]
    record = LayerRecord(
        "x", kind, f"torch.nn.{kind}", True, True, tuple(attributes.items()), parameters
    )
    full = f"mindspore.{api}" if "." in api else f"mindspore.nn.{api}"
    assert code_for(full, record, axes=3) == code


def test_what_an_api_refuses_is_no_code() -> None:
    record = LayerRecord("x", "ELU", "torch.nn.ELU", True, True, (("alpha", 2.0),))
    assert code_for("mindspore.nn.ELU", record) is None
    assert code_for("mindspore.ops.elu", record) == ""


def proposed(
    kind: str, device: str = "CPU", slug: str = "", exists: bool | None = True, **attributes: Any
) -> tuple[Candidate, ...]:
    reference, port = MemoryRun("torch"), MemoryRun("mindspore", device)
    reference.layer("x", f"torch.nn.{kind}", **attributes)
    port.layer("x", f"mindspore.nn.{kind}")
    for run in (reference, port):
        run.add(Role.INPUT, "x", np.zeros((2, 3)), slot="0")
    causes = (Cause(slug, ""),) if slug else ()
    finding = Finding(Stage.FORWARD, Verdict.DIVERGED, "x", "", "x", causes=causes)
    return candidates(finding, context_of(reference, port), exists=lambda _: exists)


def test_the_first_candidate_is_the_layer_with_its_values_filled_in() -> None:
    found = proposed("LayerNorm", normalized_shape=(64,), eps=1e-5)
    assert found[0].code == "nn.LayerNorm((64,), epsilon=1e-05)"
    assert found[0].runs_here is True
    assert any("1e-07" in text for text in found[0].differs)


def test_what_has_no_kernel_on_the_cpu_is_proposed_elsewhere_alone() -> None:
    told = {"normalized_shape": (64,), "eps": 1e-5}
    on_cpu = {c.api for c in proposed("LayerNorm", "CPU", **told)}
    on_ascend = proposed("LayerNorm", "Ascend", **told)
    assert any(".mint." in c.api for c in on_ascend)
    assert not any(".mint." in api for api in on_cpu)
    assert all(c.runs_here is None for c in on_ascend)


def test_what_the_installed_framework_lacks_is_not_proposed() -> None:
    assert proposed("GELU", exists=False, approximate="none") == ()
    assert proposed("GELU", exists=None, approximate="none")[0].exists is None


def test_no_layer_is_proposed_where_another_layer_would_not_help() -> None:
    assert proposed("GELU", slug="stop-gradient-extra", approximate="none") == ()
    assert proposed("BatchNorm2d", slug="train-mode-not-set", num_features=3, momentum=0.1) == ()


def test_code_between_layers_gets_the_function_that_its_cause_asks_for() -> None:
    reference, port = MemoryRun("torch"), MemoryRun("mindspore", "CPU")
    finding = Finding(
        Stage.FORWARD,
        Verdict.DIVERGED,
        "before fc",
        "",
        causes=(Cause("gelu-approximate-default", ""),),
    )
    found = candidates(finding, context_of(reference, port), exists=lambda _: True)
    assert found[0].api == "mindspore.ops.gelu"


def test_an_optimizer_is_replaced_only_where_its_rule_is_the_cause() -> None:
    settings = (("betas", (0.9, 0.99)), ("eps", 1e-8), ("lr", 0.001), ("weight_decay", 0.1))
    reference, port = MemoryRun("torch"), MemoryRun("mindspore", "CPU")
    reference.optimizers.append(OptimizerRecord("AdamW", "torch.optim.AdamW", (settings,)))
    port.optimizers.append(OptimizerRecord("AdamWeightDecay", "mindspore.nn.AdamWeightDecay"))
    context = context_of(reference, port)
    for slug, wanted in (("adam-bias-correction-missing", True), ("clip-missing", False)):
        finding = Finding(Stage.UPDATE, Verdict.DIVERGED, "step1", "", causes=(Cause(slug, ""),))
        found = candidates(finding, context, exists=lambda _: True)
        assert bool(found) is wanted
    assert (
        optimizer_code("mindspore.experimental.optim.AdamW", "AdamW", dict(settings))
        == "experimental.optim.AdamW(net.trainable_params(), lr=0.001, betas=(0.9, 0.99), "
        "eps=1e-08, weight_decay=0.1)"
    )
