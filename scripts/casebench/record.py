"""Runs one case's two sides under capture, in a process of its own: ``ref.h5`` and ``port.h5``.

    python -m casebench.record CASE clean|faulty OUT EXPECTED [forced]

CASE is a case as JSON. With ``forced``, forced replays of both go beside them, as the product's rounds
make them, each of nets and optimizers made anew. The expected answer goes into a file of its own, which
the process that answers is never given.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from casebench.cases import Case
from casebench.sides import Side, Sides, sides_of


def main() -> None:
    """Record one case, told by the command line."""
    text, variant, out, expected = sys.argv[1:5]
    case = Case.decoded(text)
    faulty = variant == "faulty"
    os.environ["CASE_FAULT"] = "1" if faulty else "0"
    os.environ.setdefault("GLOG_v", "3")
    sides = sides_of(case, faulty)
    record(sides, Path(out), forced="forced" in sys.argv[5:])
    Path(expected).write_text(json.dumps(sides.expected), encoding="utf-8")


def record(sides: Sides, out: Path, forced: bool = False) -> None:
    """Record both sides into ``out``, and on request their forced replays."""
    free, port = out / "ref.h5", out / "port.h5"
    _capture(sides.reference, free, sides.losses)
    _capture(sides.port, port, sides.losses)
    if forced:
        own, replay = out / "ref.forced.h5", out / "port.forced.h5"
        _record_noise(sides, free, own)
        import paritydbg

        plan = paritydbg.plan_forcing(own, port)
        _capture(sides.port, replay, sides.losses, forced_by=plan)


def _record_noise(sides: Sides, free: Path, own: Path) -> None:
    """The reference's replay with its noise measured; what it was measured on is removed again."""
    import paritydbg
    from paritydbg.replays import NOISE_RUNS

    plan = paritydbg.plan_forcing(free, free)
    told: list[dict[str, Any]] = [{"perturbed": seed} for seed in range(1, NOISE_RUNS + 1)]
    told.append({"promoted": True})
    moved = []
    for number, options in enumerate(told):
        path = own.with_name(f"moved{number}.h5")
        _capture(sides.reference, path, sides.losses, forced_by=plan, **options)
        moved.append(path)
    _capture(sides.reference, own, sides.losses, forced_by=plan, noise_from=moved)
    for path in moved:
        path.unlink()


def _capture(side: Side, path: Path, losses: list[Any], **options: Any) -> None:
    """Run the side's steps under capture."""
    import paritydbg

    net, optimizer = side.make()
    with paritydbg.capture(net, path, optimizer=optimizer, **options) as cap:
        for step in range(side.steps):
            losses.clear()
            batch = side.batch(step)
            cap.batch(**batch)
            side.step(net, optimizer, batch, step)
            if len(losses) == 1:
                cap.loss(losses[0])
            else:
                for number, loss in enumerate(losses):
                    cap.loss(loss, f"loss.{number}")
            cap.step()
        state = side.state(net, optimizer)
        if state:
            cap.state(**state)


if __name__ == "__main__":
    main()
