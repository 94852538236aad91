"""A writer that is killed leaves a file that can be read at once, with all but the last moments in it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from paritydbg.dump.reader import open_dump

FORMAT = Path(__file__).resolve().parents[2] / "paritydbg" / "dump" / "FORMAT.md"

# Writes tensors whose values are their numbers, and tells each one after it was added.
WRITER = """
import sys, time
import numpy as np
from paritydbg.dump.writer import DumpWriter
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment
with DumpWriter(sys.argv[1], Environment("none", "0", "cpu")) as writer:
    for i in range(10**9):
        array = np.full(1000 + i % 50 * 2000, i, np.int64)
        writer.add(EventKey(1, Phase.FORWARD, Role.OUTPUT, str(i)), Values(array, "int64"))
        print(i, time.time(), flush=True)
        if i == int(sys.argv[2]):
            time.sleep(60)
"""


def killed(path: Path, after: float, pause_at: int = -1) -> list[tuple[int, float]]:
    """Run the writer, kill it, and return what it told, as (number, seconds before the kill)."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(pause_at)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline()]
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    end = time.time()
    told += process.stdout.readlines()
    process.wait()
    pairs = [line.split() for line in told if line.endswith("\n")]
    return [(int(number), end - float(stamp)) for number, stamp in pairs]


@pytest.mark.parametrize("after", [0.3, 0.7, 1.1])
def test_what_was_written_half_a_second_before_a_kill_is_there(
    tmp_path: Path, after: float
) -> None:
    path = tmp_path / "a.h5"
    told = killed(path, after)
    with open_dump(path) as dump:
        found = {int(event.key.name): event for event in dump.events}
        # 100 ms are promised; a loaded machine may not run the flushing thread in time.
        due = [number for number, age in told if age > 0.5]
        assert set(due) <= set(found)
        for number, event in found.items():
            assert np.all(dump.load(event) == number)
        assert not dump.run.complete
        assert "killed" in dump.run.ended


def test_a_writer_that_idles_has_flushed_everything(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    told = killed(path, 1.5, pause_at=3)
    with open_dump(path) as dump:
        assert len(dump.events) == len(told) == 4


def test_the_five_line_reader_of_the_document_works_after_a_kill_and_after_an_end(
    tmp_path: Path,
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", FORMAT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.strip().splitlines()) == 5
    killed(tmp_path / "killed.h5", 0.6)
    from tests.dump.written import write

    write(tmp_path / "whole.h5", {"7": np.full(5, 7)})
    for name in ("killed.h5", "whole.h5"):
        scope: dict[str, object] = {}
        exec(code.replace("ref.h5", str(tmp_path / name)), scope)
        events, load = scope["events"], scope["load"]
        assert isinstance(events, list)
        assert callable(load)
        assert events
        for event in events:
            assert np.all(load(event) == int(event["name"]))
