"""What is written is read back: dtypes, shapes, order, records, and equal values only once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paritydbg.dump.reader import open_dump
from paritydbg.dump.writer import DumpWriter
from paritydbg.errors import DumpError
from paritydbg.model.event import Values
from paritydbg.model.record import LayerRecord, ParameterRecord, Taken
from tests.dump.written import ENVIRONMENT, key, write

ARRAYS: dict[str, NDArray[Any]] = {
    "float16": np.arange(6, dtype=np.float16).reshape(2, 3) / 3,
    "float32": np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7,
    "float64": np.array([np.pi, -0.0, np.inf, np.nan]),
    "int64": np.array([[-(2**62), 2**62]]),
    "uint8": np.arange(256, dtype=np.uint8),
    "bool": np.array([True, False, True]),
    "complex64": np.array([1 + 2j, 3 - 4j], np.complex64),
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 5), np.float32),
    "transposed": np.arange(12, dtype=np.float32).reshape(3, 4).T,
    "bigendian": np.arange(5, dtype=">f4"),
    "several chunks": np.arange(700_000, dtype=np.float32),
}


def test_every_dtype_and_shape_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", ARRAYS)
    with open_dump(path) as dump:
        assert [event.key.name for event in dump.events] == list(ARRAYS)
        for event, array in zip(dump.events, ARRAYS.values(), strict=True):
            loaded = dump.load(event)
            assert loaded.shape == array.shape == event.shape
            assert (
                loaded.tobytes()
                == np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
            )


def test_bfloat16_is_kept_as_bits_and_read_as_float32(tmp_path: Path) -> None:
    bits = np.array([0x3F80, 0xC000, 0x7F80], np.uint16)
    with DumpWriter(tmp_path / "a.h5", ENVIRONMENT) as writer:
        writer.add(key("a"), Values(bits, "bfloat16"))
    with open_dump(tmp_path / "a.h5") as dump:
        (event,) = dump.events
        assert event.dtype == "bfloat16"
        assert event.nbytes == 6
        assert dump.load(event).tolist() == [1.0, -2.0, np.inf]
        assert dump.load(event).dtype == np.float32


def test_equal_values_are_stored_once_and_have_one_digest(tmp_path: Path) -> None:
    large = np.random.default_rng(0).standard_normal(500_000)
    once = write(tmp_path / "once.h5", {"a": large}).stat().st_size
    twice = write(tmp_path / "twice.h5", {"a": large, "b": large.copy()}).stat().st_size
    assert twice < once + 10_000
    with open_dump(tmp_path / "twice.h5") as dump:
        first, second = dump.events
        assert first.digest == second.digest
        assert np.array_equal(dump.load(second), large)


def test_equal_bytes_of_another_shape_or_dtype_have_another_digest(tmp_path: Path) -> None:
    zeros = np.zeros((2, 6), np.float32)
    path = write(
        tmp_path / "a.h5", {"a": zeros, "b": zeros.reshape(3, 4), "c": zeros.view(np.int32)}
    )
    with open_dump(path) as dump:
        assert len({event.digest for event in dump.events}) == 3


def test_a_key_written_twice_holds_its_later_value(tmp_path: Path) -> None:
    with DumpWriter(tmp_path / "a.h5", ENVIRONMENT) as writer:
        for value in (1.0, 2.0):
            writer.add(key("a"), Values.of(np.array(value)))
    with open_dump(tmp_path / "a.h5") as dump:
        (event,) = dump.events
        assert dump.load(event) == 2.0


@pytest.mark.parametrize(
    "name", ["", "a.b#1", 'with "quotes" and \\', "日本", "line\nbreak", "a/b"]
)
def test_any_name_survives(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.h5", {name: np.ones(3)})
    with open_dump(path) as dump:
        assert dump.events[0].key == key(name)


def test_records_and_the_end_come_back(tmp_path: Path) -> None:
    layer = LayerRecord("fc", "Linear", "torch.nn.Linear", True, True, (("eps", (1, None, "x")),))
    parameter = ParameterRecord("fc.weight", "fc", (2, 3), "float32", True, tied_to="emb.weight")
    writer = DumpWriter(tmp_path / "a.h5", ENVIRONMENT, command="python train.py")
    for record in (layer, parameter, Taken("loss", "line 3"), "a note"):
        writer.record(record)
    writer.add(key("a"), Values.of(np.ones(2)))
    writer.close(complete=False, ended="it raised")
    with open_dump(tmp_path / "a.h5") as dump:
        run = dump.run
        assert run.layers == (layer,)
        assert run.parameters == (parameter,)
        assert run.taken == (Taken("loss", "line 3"),)
        assert run.notes == ("a note",)
        assert run.environment == ENVIRONMENT
        assert (run.command, run.complete, run.ended) == ("python train.py", False, "it raised")


def test_a_dump_is_replaced_and_anything_else_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", {"a": np.ones(2)})
    write(path, {"b": np.ones(2)})
    with open_dump(path) as dump:
        assert [event.key.name for event in dump.events] == ["b"]
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    with pytest.raises(DumpError, match=r"thesis\.txt exists and is no paritydbg dump"):
        write(precious, {"a": np.ones(2)})
    assert precious.read_text() == "years of work"


def test_a_missing_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="its folder does not exist"):
        write(tmp_path / "nowhere" / "a.h5", {"a": np.ones(2)})


def test_large_tensors_are_stored_once_and_tell_small_changes_apart(tmp_path: Path) -> None:
    large = np.random.default_rng(0).standard_normal(1_000_000)
    changed = large.copy()
    changed[123_457] += 1.0
    path = write(tmp_path / "a.h5", {"a": large, "b": changed, "c": large.copy()})
    assert path.stat().st_size < 2.3 * large.nbytes
    with open_dump(path) as dump:
        digests = [event.digest for event in dump.events]
        assert digests[0] == digests[2] != digests[1]
        assert np.array_equal(dump.load(dump.events[1]), changed)


def test_a_large_tensor_at_the_interpreters_end_is_stored(tmp_path: Path) -> None:
    script = """
import atexit, sys
import numpy as np
from paritydbg.dump.writer import DumpWriter
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment
writer = DumpWriter(sys.argv[1], Environment("none", "0", "cpu"))
def finish():
    array = np.arange(2_000_000.0)
    writer.add(EventKey(1, Phase.UPDATE, Role.PARAMETER, "w"), Values(array, "float64"))
    writer.close()
atexit.register(finish)
"""
    path = tmp_path / "a.h5"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=60)
    with open_dump(path) as dump:
        assert np.array_equal(dump.load(dump.events[0]), np.arange(2_000_000.0))
