"""The sentences of a report, free of any output format; terminal and Markdown render the same ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paritydbg.model.comparison import Comparison, Metrics, Verdict
from paritydbg.model.finding import AttributeDifference, Candidate, Finding, Stage
from paritydbg.model.record import Attribute, LayerRecord, RunRecord
from paritydbg.model.report import Report
from paritydbg.model.trial import TrialOutcome


@dataclass(frozen=True)
class Line:
    """One labelled line of a finding; ``code`` lines are meant to be pasted."""

    label: str
    text: str
    code: bool = False


def headline(report: Report) -> str:
    """The verdict in one sentence."""
    if not report.findings:
        if report.suspects:
            places = ", ".join(f.place for f in report.suspects[:3])
            return f"Parity, with {_count(len(report.suspects), 'suspect')} worth a look: {places}"
        if not (report.reference.complete and report.port.complete):
            return "No difference beyond rounding up to where a run was cut short"
        if report.coverage.masked:
            behind = _count(report.coverage.masked, "tensor")
            return f"No difference beyond rounding in what can be told: {behind} lie behind dropout"
        return "Parity: no difference beyond rounding"
    first = report.findings[0]
    more = len(report.findings) - 1
    tail = f", and {_count(more, 'more independent finding')}" if more else ""
    return f"First divergence: {first.place} ({where(first)}){tail}"


def where(finding: Finding) -> str:
    """Stage and step of a finding: ``forward, step 1``."""
    if finding.static:
        return finding.stage.value
    return f"{finding.stage.value}, step {finding.step}"


def finding_lines(finding: Finding, report: Report) -> tuple[Line, ...]:
    """Everything a report says about one finding, in the order in which a person asks."""
    lines = [Line("what", finding.summary)]
    lines += _layers(finding, report)
    if finding.inputs_agree is not None:
        lines.append(Line("input", "agrees" if finding.inputs_agree else "differs already"))
    if finding.evidence is not None:
        lines += evidence_lines(finding.evidence)
    lines += [Line("attribute", attribute_text(d)) for d in finding.attributes]
    for cause in finding.causes:
        sure = f" ({cause.confidence:.0%} sure)" if cause.confidence else ""
        lines.append(Line("cause", f"{cause.slug}{sure}: {cause.summary}"))
        if cause.evidence:
            lines.append(Line("evidence", cause.evidence))
    if not finding.causes:
        lines.append(Line("cause", "not known; nothing in the layers' attributes explains it"))
    for candidate in finding.candidates:
        lines.append(Line("instead", candidate.code or candidate.api, code=True))
        if candidate.trial is not None:
            lines.append(Line("tried", trial_text(candidate.trial)))
        lines.append(Line("", candidate_text(candidate)))
    if finding.candidates and all(c.trial and c.trial.works is False for c in finding.candidates):
        lines.append(Line("instead", "none of these gives the reference's values here"))
    if finding.also:
        lines.append(Line("also", _some(finding.also)))
    if finding.followers:
        lines.append(Line("follows", f"{_count(finding.followers, 'event')} differ because of it"))
    return tuple(lines)


def evidence_lines(comparison: Comparison) -> list[Line]:
    """The numbers of the deciding comparison, in words, with the allowance beside them."""
    key = comparison.pair.first.key
    what = f"{key.role.value}{f'[{key.slot}]' if key.slot else ''}"
    if comparison.verdict is Verdict.SHAPE:
        shapes = (
            [e.shape for e in comparison.pair.reference],
            [e.shape for e in comparison.pair.port],
        )
        return [Line("shapes", f"{what}: reference {shapes[0]}, port {shapes[1]}")]
    metrics = comparison.metrics
    if metrics is None:
        return [Line("why", comparison.reason)] if comparison.reason else []
    lines = []
    allowance = comparison.allowance
    if allowance is not None:
        allowed = allowance.l2 / metrics.reference_l2 if metrics.reference_l2 else allowance.l2
        lines.append(
            Line(
                "how far",
                f"{what}: relative L2 {metrics.relative_l2:.2e}{error_bar(metrics)}, allowed {allowed:.2e} "
                f"({allowance.basis}: {allowance.words}); {times_over(comparison.score)}",
            )
        )
    if metrics.error_l2:
        lines.append(
            Line("sketch", comparison.reason or "estimated from a sketch: no single elements")
        )
    elif metrics.max_index or not math.isnan(metrics.reference_at):
        lines.append(
            Line(
                "worst at",
                f"{list(metrics.max_index)}: reference {metrics.reference_at:.6g}, port "
                f"{metrics.port_at:.6g}; {metrics.outside:.1%} of {metrics.count} elements outside",
            )
        )
    lost = metrics.nan_reference + metrics.inf_reference, metrics.nan_port + metrics.inf_port
    if any(lost):
        lines.append(
            Line(
                "NaN/Inf",
                f"reference {metrics.nan_reference} NaN, {metrics.inf_reference} Inf; "
                f"port {metrics.nan_port} NaN, {metrics.inf_port} Inf",
            )
        )
    return lines


def error_bar(metrics: Metrics) -> str:
    """`` ± 4 %`` beside a number that was estimated from a sketch, ``""`` beside any other."""
    if not metrics.error_l2:
        return ""
    return f" ± {100.0 * metrics.error_l2 / metrics.difference_l2:.0f} %"


def times_over(score: float) -> str:
    """A score in words: how many times over what is allowed."""
    if score <= 1:
        return "within what is allowed"
    return f"{score:,.0f} times over" if score >= 10 else f"{score:.1f} times over"


def attribute_text(difference: AttributeDifference) -> str:
    """``eps 1e-05, the port's epsilon 1e-07; write epsilon=1e-05``."""
    port_name = difference.port_name or difference.name
    text = (
        f"{difference.name} {_value(difference.reference)}, the port's {port_name} "
        f"{_value(difference.port)}"
    )
    if difference.expected is not None:
        text += f"; write {port_name}={_value(difference.expected)}"
    return text


def candidate_text(candidate: Candidate) -> str:
    """What is known about a replacement: existence, device, differences."""
    parts = [candidate.api]
    if candidate.exists is not None:
        parts.append("installed" if candidate.exists else "not in the installed MindSpore")
    if candidate.runs_here is not None:
        parts.append("runs on CPU" if candidate.runs_here else "has no working CPU kernel")
    if candidate.differs:
        parts.append("differs: " + "; ".join(candidate.differs))
    if candidate.note:
        parts.append(candidate.note)
    return " · ".join(parts)


def trial_text(trial: TrialOutcome) -> str:
    """How a candidate did on the captured tensors: verdict first, then the numbers."""
    if trial.works is None:
        return trial.words
    told = [
        f"{what} {error:.1e}"
        for what, error in (
            ("forward", trial.forward),
            ("backward", trial.backward),
            ("values afterwards", trial.state),
        )
        if error is not None
    ]
    numbers = f" (relative error: {', '.join(told)})" if told else ""
    verdict = "works" if trial.works else "does not give the reference's values"
    if not trial.works and not told:
        return trial.words
    return f"{verdict}{numbers}{f'; {trial.words}' if trial.words else ''}"


def coverage_text(report: Report) -> str:
    """How much of what was captured was compared, and why the rest was not."""
    cover = report.coverage
    text = (
        f"Compared {cover.compared:,} of {cover.captured:,} captured events ({cover.share:.1%}); "
        f"{_count(len(report.alignment.layers), 'layer')} paired"
    )
    if cover.untested:
        reasons = "; ".join(f"{count} {reason}" for reason, count in cover.untested[:4])
        text += f". Not compared: {reasons}"
    return text


def run_text(run: RunRecord, path: str) -> str:
    """A dump in a line: ``ref.h5: torch 2.13.0 on cpu``."""
    made = run.environment
    cut = "" if run.complete else f", incomplete{f' ({run.ended})' if run.ended else ''}"
    return f"{path}: {made.framework} {made.version} on {made.device}{cut}"


def next_command(report: Report) -> str:
    """What to type next."""
    dumps = f"{report.reference_path} {report.port_path}"
    if not report.findings:
        return f"paritydbg diff {dumps} --sort worst"
    first = report.findings[0]
    if first.stage is Stage.WEIGHTS:
        return (
            f"paritydbg run --weights-from {report.reference_path} --inputs-from "
            f"{report.reference_path} -o {report.port_path} -- python YOUR_PORT.py"
        )
    if first.evidence is not None:
        layer = first.evidence.pair.first.key.name
        if layer:
            return f"paritydbg diff {dumps} --layer '{layer}*'"
    return f"paritydbg diff {dumps}"


def _layers(finding: Finding, report: Report) -> list[Line]:
    """The two layers by their public names, where the place is a layer or lies in one."""
    name = bare_place(finding.place)
    reference = _owner(name, report.reference.layers)
    port = _owner(finding.port_place or name, report.port.layers)
    if (reference is None and port is None) or finding.place.startswith(_NO_LAYER):
        return []
    left = f"{reference.api} {reference.name or '(net)'}" if reference else "nothing"
    right = f"{port.api} {port.name or '(net)'}" if port else "nothing"
    return [Line("layers", f"{left} ↔ {right}")]


# Places that are no layer's, though a layer's parameter may bear the evidence.
_NO_LAYER = ("step", "loss", "inputs:", "state:")


def bare_place(place: str) -> str:
    """The layer or parameter name in a place: without ``before``, ``after`` and the call number."""
    for prefix in ("before ", "after "):
        place = place.removeprefix(prefix)
    return "" if place == "(net)" else place.split("#")[0]


def _owner(name: str, layers: tuple[LayerRecord, ...]) -> LayerRecord | None:
    by_name = {layer.name: layer for layer in layers}
    name = bare_place(name)
    if name in by_name:
        return by_name[name]
    return by_name.get(name.rpartition(".")[0]) if "." in name else None


def _value(value: Attribute) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _some(names: tuple[str, ...], most: int = 6) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
