"""Holds the model of rounding against what was measured, on the reference side of every sample pair.

    python scripts/noisebench.py sample_nets

Each pair's PyTorch net is replayed on its own values: as it is, with values moved in their last bit,
and in float64. Per kind of tensor the table shows how the allowance that the model grants (all that a
verdict needs where no replay was made) compares with the noise that was found: the larger of the
spread and the error against float64. A tensor whose noise is above the model's allowance could alarm.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from casebench.cases import ROOT

import paritydbg
from paritydbg.model.event import EventKey, Phase, Role

# As many as the rounds make.
RUNS = 3


@dataclass(frozen=True)
class Row:
    """One kind of tensor of one pair.

    Attributes:
        pair, kind: the sample pair, and which tensors.
        tensors: with both a model's allowance and measured noise.
        above: of those, how many whose noise is above the model's allowance.
        low, median, high: allowance over noise: the first decile, the median, the ninth decile.
        exact: how many were computed in float64 as well.
    """

    pair: str
    kind: str
    tensors: int
    above: int
    low: float
    median: float
    high: float
    exact: int


def kind_of(key: EventKey) -> str:
    """The table's word for a tensor."""
    if key.role is Role.LOSS:
        return "loss"
    if key.role is Role.GRAD:
        return "parameter gradients"
    return "gradients" if key.phase is Phase.BACKWARD else "activations"


def record(pair: str, folder: Path, steps: int) -> None:
    """Replay the pair's PyTorch net: ``plain.h5`` without noise, ``own.h5`` with it, beside ``ref.h5``."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    reference, data = (
        import_module(f"sample_nets.{pair}.{name}") for name in ("torch_net", "data")
    )
    net = reference.make_net().train()
    batches = [
        {name: torch.from_numpy(np.array(array)) for name, array in data.batch(step + 1).items()}
        for step in range(steps)
    ]

    def run(name: str, **options: Any) -> Path:
        path = folder / f"{name}.h5"
        torch.manual_seed(1)
        with paritydbg.capture(net, path, **options) as cap:
            for batch in batches:
                net.zero_grad()
                loss = reference.loss(net, batch)
                cap.loss(loss)
                loss.backward()
                cap.step()
        return path

    free = run("ref")
    plan = paritydbg.plan_forcing(free, free)
    moved = [run(f"moved{n}", forced_by=plan, perturbed=n) for n in range(1, RUNS + 1)]
    moved.append(run("exact", forced_by=plan, promoted=True))
    run("plain", forced_by=plan)
    run("own", forced_by=plan, noise_from=moved)


def rows(pair: str, folder: Path) -> list[Row]:
    """The pair's rows, from its replays."""
    plain = folder / "plain.h5"
    report = paritydbg.diff(folder / "ref.h5", folder / "ref.h5", forced=(plain, plain))
    allowed = {c.pair.first.key: c.allowance.l2 for c in report.comparisons if c.allowance}
    with paritydbg.open_dump(folder / "own.h5") as dump:
        records = dump.run.noise
    found: dict[str, list[tuple[float, float, bool]]] = {}
    for one in records:
        noise = max(one.spread or 0.0, one.exact or 0.0)
        if noise and one.key in allowed:
            entry = (allowed[one.key], noise, one.exact is not None)
            found.setdefault(kind_of(one.key), []).append(entry)
    return [_row(pair, kind, entries) for kind, entries in found.items()]


def _row(pair: str, kind: str, entries: Sequence[tuple[float, float, bool]]) -> Row:
    ratios = np.array([allowed / noise for allowed, noise, _ in entries])
    low, median, high = (float(q) for q in np.quantile(ratios, (0.1, 0.5, 0.9)))
    above = int((ratios < 1.0).sum())
    return Row(pair, kind, len(entries), above, low, median, high, sum(e for *_, e in entries))


def rendered(found: Sequence[Row]) -> str:
    """The table as text."""
    head = (
        "pair",
        "tensors of",
        "number",
        "in float64",
        "above",
        "allowance / noise: 10 %",
        "50 %",
        "90 %",
    )
    lines = [head] + [
        (r.pair, r.kind, str(r.tensors), str(r.exact), str(r.above))
        + tuple(f"{value:.3g}" for value in (r.low, r.median, r.high))
        for r in found
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--net", "nets", multiple=True, help="Only these pairs.")
@click.option("--steps", default=1, show_default=True, help="Steps to replay.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write the rows here.")
def main(folder: Path, nets: tuple[str, ...], steps: int, out: Path | None) -> None:
    """Print model against measurement for the sample pairs in FOLDER."""
    sys.path.insert(0, str(ROOT))
    known = sorted(file.parent.name for file in folder.glob("*/torch_net.py"))
    unknown = [name for name in nets if name not in known]
    if unknown or not known:
        raise click.UsageError(
            f"{folder} holds no pair {', '.join(unknown) or 'at all'}; it has {', '.join(known) or 'none'}"
        )
    found: list[Row] = []
    for pair in nets or known:
        click.echo(f"{pair} …", err=True)
        with tempfile.TemporaryDirectory(prefix="noisebench-") as place:
            record(pair, Path(place), steps)
            found += rows(pair, Path(place))
    click.echo(rendered(found))
    total, above = sum(r.tensors for r in found), sum(r.above for r in found)
    click.echo(f"{total} tensors: noise above the model's allowance in {above}")
    if out is not None:
        out.write_text(json.dumps([asdict(row) for row in found], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
