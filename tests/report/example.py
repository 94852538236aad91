"""One small report with everything in it that a renderer has to show."""

from __future__ import annotations

from dataclasses import replace

from paritydbg.model.comparison import Allowance, Comparison, Metrics, Verdict
from paritydbg.model.event import Event, EventKey, Phase, Role
from paritydbg.model.finding import AttributeDifference, Candidate, Cause, Finding, Stage
from paritydbg.model.pair import Alignment, EventPair, LayerPair
from paritydbg.model.record import Environment, LayerRecord, RunRecord
from paritydbg.model.report import Coverage, Report


def comparison(
    name: str, order: int, score: float, verdict: Verdict, role: Role = Role.OUTPUT
) -> Comparison:
    """A comparison whose numbers follow from its score."""
    key = EventKey(1, Phase.FORWARD, role, name)
    event = Event(key, order, (2, 3), "float32", 24, f"{name}{order}")
    metrics = Metrics(
        count=6,
        max_abs=score * 1e-6,
        max_index=(1, 2),
        reference_at=1.0,
        port_at=1.0 + score * 1e-6,
        relative_l2=score * 1e-6,
        difference_l2=score * 2e-6,
        reference_l2=2.0,
        port_l2=2.0,
        cosine=1.0,
        ratio=1.0,
        outside=0.5,
    )
    allowance = Allowance(2e-6, "modelled", "float32 rounding over 16 terms")
    return Comparison(EventPair((event,), (event,)), verdict, metrics, allowance, score)


def example() -> Report:
    """A LayerNorm whose epsilon differs, and what follows from it."""
    deciding = comparison("norm", 1, 3000.0, Verdict.DIVERGED)
    torch_layer = LayerRecord("norm", "LayerNorm", "torch.nn.LayerNorm", True, True)
    port_layer = LayerRecord("norm", "LayerNorm", "mindspore.nn.LayerNorm", True, True)
    finding = Finding(
        stage=Stage.FORWARD,
        verdict=Verdict.DIVERGED,
        place="norm",
        summary="norm is the first layer whose output differs though its input agrees",
        port_place="norm",
        evidence=deciding,
        inputs_agree=True,
        attributes=(
            AttributeDifference("eps", 1e-5, 1e-7, "epsilon", 1e-5, "layernorm-eps-default"),
        ),
        causes=(Cause("layernorm-eps-default", "epsilon was left at its default", "", 0.9),),
        candidates=(
            Candidate(
                "mindspore.nn.LayerNorm",
                "nn.LayerNorm((16,), epsilon=1e-05)",
                ("epsilon defaults to 1e-7",),
                None,
                True,
            ),
        ),
        followers=1,
    )
    return Report(
        reference_path="ref.h5",
        port_path="port.h5",
        reference=RunRecord(
            Environment("torch", "2.13.0", "cpu"), layers=(torch_layer,), complete=True
        ),
        port=RunRecord(
            Environment("mindspore", "2.10.0", "CPU"), layers=(port_layer,), ended="killed"
        ),
        alignment=Alignment((LayerPair("norm", "norm", "name", 1.0),), (), (deciding.pair,)),
        comparisons=(
            comparison("emb", 0, 0.5, Verdict.MATCH),
            deciding,
            comparison("head", 2, 900.0, Verdict.INHERITED),
        ),
        findings=(finding,),
        suspects=(),
        coverage=Coverage(8, 6, (("only the reference has it", 2),)),
        notes=("noise was modelled",),
    )


def clean() -> Report:
    """The same without any finding."""
    return replace(example(), findings=(), comparisons=example().comparisons[:1])
