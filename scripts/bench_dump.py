"""Measures the dump's writer and reader against plain files; every figure is a ratio within one run.

    python scripts/bench_dump.py            # a minute
    python scripts/bench_dump.py --quick    # seconds, for a look

Repetitions of all contestants take turns, so that a slow moment of the machine hits all alike; the
medians are compared.
"""

from __future__ import annotations

import os
import queue
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from paritydbg.dump.reader import open_dump
from paritydbg.dump.writer import DumpWriter
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment

SMALL, LARGE = 4 << 10, 64 << 20
QUEUE_BYTES = 256 << 20
Arrays = list[NDArray[Any]]


def environment() -> Environment:
    return Environment(framework="none", version="0", device="cpu")


def keys(count: int) -> list[EventKey]:
    roles = (Role.INPUT, Role.OUTPUT, Role.GRAD_OUTPUT, Role.GRAD_INPUT)
    return [
        EventKey(
            1 + i // 4000, Phase.FORWARD, roles[i % 4], f"layers.{i // 4 % 1000}.attention.query"
        )
        for i in range(count)
    ]


def arrays(count: int, size: int) -> Arrays:
    source = np.random.default_rng(0)
    return [source.standard_normal(size // 4, dtype=np.float32) for _ in range(count)]


def plain(path: Path, data: Arrays) -> None:
    """The same bytes appended to one file, each at once."""
    with open(path, "wb", buffering=0) as file:
        for array in data:
            file.write(array.data)


def dump(path: Path, data: Arrays, names: list[EventKey]) -> None:
    with DumpWriter(path, environment()) as writer:
        for key, array in zip(names, data, strict=True):
            writer.add(key, Values(array, "float32"))


def threaded(path: Path, data: Arrays, names: list[EventKey]) -> None:
    """A writer thread behind a queue bounded in bytes, for comparison: it needs copies of its own."""
    with DumpWriter(path, environment()) as writer:
        waiting: queue.SimpleQueue[tuple[EventKey, NDArray[Any]] | None] = queue.SimpleQueue()
        room = threading.BoundedSemaphore(max(1, QUEUE_BYTES // data[0].nbytes))

        def write() -> None:
            while (item := waiting.get()) is not None:
                writer.add(item[0], Values(item[1], "float32"))
                room.release()

        worker = threading.Thread(target=write)
        worker.start()
        for key, array in zip(names, data, strict=True):
            room.acquire()
            waiting.put((key, array.copy()))
        waiting.put(None)
        worker.join()


def timed(action: Callable[[], None]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def medians(contestants: dict[str, Callable[[Path], None]], repeats: int) -> dict[str, float]:
    """Median seconds of each, files removed after each turn."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            for name, action in contestants.items():
                path = Path(folder) / name
                found[name].append(timed(lambda a=action, p=path: a(p)))
                os.unlink(path)
    return {name: statistics.median(times) for name, times in found.items()}


@click.command()
@click.option("--quick", is_flag=True, help="Fewer and smaller runs.")
def main(quick: bool) -> None:
    """Print the ratios."""
    repeats = 3 if quick else 9
    count = 2_000 if quick else 20_000
    small, names = arrays(count, SMALL), keys(count)
    of_small = medians(
        {
            "plain": lambda path: plain(path, small),
            "dump": lambda path: dump(path, small, names),
            "threaded": lambda path: threaded(path, small, names),
        },
        repeats,
    )
    click.echo(
        f"4 KB tensors: plain append {of_small['plain'] / count * 1e6:.1f} us each; "
        f"the dump costs {of_small['dump'] / of_small['plain']:.2f} times that"
    )
    click.echo(
        f"4 KB tensors behind a writer thread: {of_small['threaded'] / of_small['plain']:.2f} times"
    )
    pieces = 4 if quick else 8
    large = arrays(pieces, LARGE)
    of_large = medians(
        {
            "plain": lambda path: plain(path, large),
            "dump": lambda path: dump(path, large, names[:pieces]),
            "threaded": lambda path: threaded(path, large, names[:pieces]),
        },
        repeats,
    )
    speed = pieces * LARGE / of_large["plain"] / 1e9
    click.echo(
        f"64 MB tensors: plain write {speed:.2f} GB/s; "
        f"the dump writes at {of_large['plain'] / of_large['dump']:.2f} of it"
    )
    click.echo(
        f"64 MB tensors behind a writer thread: {of_large['plain'] / of_large['threaded']:.2f} of it"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.h5"
        tiny = arrays(20_000, 64)
        dump(path, tiny, keys(20_000))
        opened = statistics.median(timed(lambda: open_dump(path).close()) for _ in range(repeats))
    click.echo(f"opening a dump of 20,000 events: {opened * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
