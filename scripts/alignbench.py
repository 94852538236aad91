"""Writes the sample nets down in other ways and prints how much of the truth alignment finds.

    python scripts/alignbench.py --net lenet5 -k renamed --json out.json

The port is made from the reference, so that which layer stands for which is known. Both sides run
one step under capture, once with equal weights and once with different ones, and the two dumps are
aligned in both directions: a port with fused projections is a reference with fused ones as well.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from alignbed.judge import Judgement, Score, align_and_judge

NETS = ("lenet5", "resnet50", "bert", "llama", "rnn", "unet")
WEIGHTS = ("equal", "different")


@dataclass(frozen=True)
class Outcome:
    """One net under one mutation, judged in both directions; ``error`` if that failed."""

    net: str
    mutation: str
    weights: str
    judgement: Judgement
    seconds: float
    error: str = ""


def outcomes(
    nets: Sequence[str], weights: Sequence[str], patterns: Sequence[str] = ()
) -> Iterator[Outcome]:
    """Every mutation that applies to each of the nets, judged, one after the other."""
    import torch
    from alignbed.mutations import MUTATIONS

    torch.set_num_threads(1)
    chosen = [m for m in MUTATIONS if not patterns or any(p in m.name for p in patterns)]
    for net in nets:
        for mutation in chosen:
            for how in weights:
                if how == "different" and mutation.values_only:
                    continue
                with tempfile.TemporaryDirectory(prefix="alignbench-") as folder:
                    yield from _outcome(net, mutation, how, Path(folder))


def _outcome(net: str, mutation: Any, weights: str, folder: Path) -> Iterator[Outcome]:
    from alignbed.ground_truth import truth_of
    from alignbed.record import change_weights, make_net, record
    from alignbed.rewiring import mark

    reference = make_net(net)
    if mutation.prepare is not None:
        mutation.prepare(reference)
    mark(reference)
    try:
        mine = record(reference, net, folder / "reference.h5", mutation.passes[0])
        port = mutation.port(reference, mine.calls())
        if port is None:
            return
        if weights == "different":
            change_weights(port)
        yours = record(port, net, folder / "port.h5", mutation.passes[1])
        truth = truth_of(mine, yours)
        begin = time.perf_counter()
        judged = align_and_judge(mine.dump, yours.dump, truth)
        judged += align_and_judge(yours.dump, mine.dump, truth.turned())
        yield Outcome(net, mutation.name, weights, judged, time.perf_counter() - begin)
    except Exception as error:  # noqa: BLE001 (one net that fails must not stop the bench)
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        yield Outcome(net, mutation.name, weights, Judgement(), 0.0, reason)


def totals(found: Sequence[Outcome]) -> dict[str, Any]:
    """The sums over all outcomes, for all and for each kind of weights."""
    result: dict[str, Any] = {"outcomes": len(found), "errors": sum(bool(o.error) for o in found)}
    result["perfect"] = sum(o.judgement.perfect and not o.error for o in found)
    for name, chosen in [("all", found)] + [
        (how, [o for o in found if o.weights == how]) for how in WEIGHTS
    ]:
        total = sum((o.judgement for o in chosen), Judgement())
        result[name] = _scores(total)
    return result


def _scores(judgement: Judgement) -> dict[str, Any]:
    return {
        kind: {"found": score.found, "true": score.true, "wrong": score.wrong}
        for kind, score in (
            ("layers", judgement.layers),
            ("parameters", judgement.parameters),
            ("calls", judgement.calls),
        )
    }


def entry(outcome: Outcome) -> dict[str, Any]:
    """The outcome as the JSON file has it."""
    judged = outcome.judgement
    kinds = (("layers", judged.layers), ("parameters", judged.parameters), ("calls", judged.calls))
    return {
        "net": outcome.net,
        "mutation": outcome.mutation,
        "weights": outcome.weights,
        "seconds": round(outcome.seconds, 3),
        "error": outcome.error,
        **_scores(judged),
        "missed": {kind: list(score.missed_pairs) for kind, score in kinds},
        "made wrongly": {kind: list(score.wrong_pairs) for kind, score in kinds},
    }


def print_table(found: Sequence[Outcome], pairs: int) -> None:
    """A row for each outcome, a line of totals below."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 140)
    table = Table()
    for name in ("net", "mutation", "weights"):
        table.add_column(name, no_wrap=True)
    for name in ("layers", "parameters", "calls"):
        table.add_column(name, justify="right")
    for o in found:
        judged = o.judgement
        cells = [_cell(s) for s in (judged.layers, judged.parameters, judged.calls)]
        style = "" if judged.perfect and not o.error else "red"
        table.add_row(
            o.net, o.mutation, o.weights, *([o.error, "", ""] if o.error else cells), style=style
        )
    console.print(table)
    for o in found if pairs else ():
        for kind in ("layers", "parameters", "calls"):
            score: Score = getattr(o.judgement, kind)
            for what, texts in (("missed", score.missed_pairs), ("wrong", score.wrong_pairs)):
                for text in texts[:pairs]:
                    line = f"{o.net} {o.mutation} {o.weights}: {what} {kind} {text}"
                    console.print(line, soft_wrap=True, markup=False, highlight=False)
    summed = totals(found)
    for name in ("all", *WEIGHTS):
        parts = [
            f"{kind} {s['found']}/{s['true']}, {s['wrong']} wrong"
            for kind, s in summed[name].items()
        ]
        console.print(f"{name}: {'; '.join(parts)}", soft_wrap=True)
    console.print(
        f"{summed['outcomes']} outcomes, {summed['perfect']} without a fault, "
        f"{summed['errors']} that failed"
    )


def _cell(score: Score) -> str:
    text = f"{score.found}/{score.true}"
    return f"{text}, {score.wrong} wrong" if score.wrong else text


@click.command()
@click.option("--net", "nets", multiple=True, type=click.Choice(NETS), help="Only this sample net.")
@click.option(
    "--weights",
    type=click.Choice((*WEIGHTS, "both")),
    default="both",
    show_default=True,
    help="Whether the port has the reference's weights; values of parameters are an anchor.",
)
@click.option("-k", "patterns", multiple=True, help="Only mutations whose name contains this.")
@click.option("--pairs", default=0, help="Print so many missed and wrong pairs of each outcome.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write the results here.")
def main(
    nets: tuple[str, ...], weights: str, patterns: tuple[str, ...], pairs: int, out: Path | None
) -> None:
    """Align the sample nets with themselves written in other ways; print what was found."""
    from rich.console import Console

    kinds = WEIGHTS if weights == "both" else (weights,)
    found = []
    errors = Console(stderr=True)
    with errors.status("aligning") as status:
        for outcome in outcomes(nets or NETS, kinds, patterns):
            found.append(outcome)
            status.update(f"{outcome.net}: {outcome.mutation}")
    print_table(found, pairs)
    if out is not None:
        results = {"totals": totals(found), "outcomes": [entry(o) for o in found]}
        out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
