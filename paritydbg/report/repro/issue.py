"""The text for the framework's maintainers: what differs, on what, what was tried, how to see it."""

from __future__ import annotations

from collections.abc import Mapping

from paritydbg.model.handover import Handover, HandoverSide
from paritydbg.model.trial import Array
from paritydbg.report.lines import candidate_text, trial_text
from paritydbg.report.repro.scripts import short, title


def issue_text(handover: Handover) -> str:
    """The issue in Markdown, ready to be sent."""
    finding = handover.finding
    parts = [f"# {title(handover)}", ""]
    layer = "" if handover.anonymous else f" (`{finding.place}` of a net)"
    parts += [
        f"The same tensors go through `{short(handover.reference.code)}` and "
        f"`{short(handover.port.code)}`{layer}, and what comes out differs by more than rounding.",
        "",
        "## How to see it",
        "",
        "```",
        "python repro_mindspore.py   # holds MindSpore's result against torch's, kept in tensors.npz",
        "python repro_torch.py       # the other way round",
        "```",
        "",
        "Each needs its framework and numpy alone, prints the relative differences, and ends with 1 "
        "where they are too large.",
        "",
        "## What differs",
        "",
        "| | relative difference | allowed |",
        "| --- | --- | --- |",
        *(
            f"| {_cell(what)} | {error:.3e} | {limit:.0e} |"
            for what, error, limit in handover.errors
        ),
        "",
        "## Where",
        "",
        "| | torch | MindSpore |",
        "| --- | --- | --- |",
        *_environments(handover),
        f"| code | `{_cell(handover.reference.code)}` | `{_cell(handover.port.code)}` |",
        f"| mode | {_mode(handover)} | {_mode(handover)} |",
        "",
        "## Tensors",
        "",
        "| | shape | dtype |",
        "| --- | --- | --- |",
        *_tensors(handover),
        "",
    ]
    if handover.anonymous:
        parts += [
            "The tensors were drawn at random, with the spread of those where it was seen.",
            "",
        ]
    parts += _causes(handover) + _tried(handover)
    return "\n".join(parts)


def _environments(handover: Handover) -> list[str]:
    mine, yours = handover.reference.environment, handover.port.environment
    return [
        f"| version | {mine.version} | {yours.version} |",
        f"| device | {mine.device} | {yours.device} |",
        f"| python | {mine.python or '?'} | {yours.python or '?'} |",
    ]


def _mode(handover: Handover) -> str:
    if handover.trial.layer is None:
        return "one step of a fresh optimizer"
    return "train" if handover.trial.training else "eval"


def _tensors(handover: Handover) -> list[str]:
    trial = handover.trial
    found = [*_rows("input", trial.inputs), *_rows("gradient of output", trial.grad_outputs)]
    side: HandoverSide = handover.port
    found += _rows("MindSpore's", side.values)
    return found


def _rows(what: str, arrays: Mapping[str, Array]) -> list[str]:
    return [f"| {what} {_cell(n)} | {list(a.shape)} | {a.dtype} |" for n, a in arrays.items()]


def _causes(handover: Handover) -> list[str]:
    causes = handover.finding.causes
    if handover.anonymous or not causes:
        return []
    lines = [
        f"- {cause.slug} ({cause.confidence:.0%}): {cause.summary}. {cause.evidence}".rstrip()
        for cause in causes
    ]
    return ["## Likely cause", "", *lines, ""]


def _tried(handover: Handover) -> list[str]:
    candidates = handover.finding.candidates
    if not candidates:
        return []
    lines = []
    for candidate in candidates:
        outcome = trial_text(candidate.trial) if candidate.trial is not None else "not tried"
        lines.append(
            f"- `{candidate.code or candidate.api}`: {outcome} ({candidate_text(candidate)})"
        )
    return ["## What was tried instead", "", *lines, ""]


def _cell(text: str) -> str:
    """Text that cannot break a table or leave its code span."""
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")
