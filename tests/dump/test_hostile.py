"""Files that are no dump, damaged, or made to harm: one line, nothing allocated, nothing followed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from paritydbg.dump import schema
from paritydbg.dump.reader import open_dump
from paritydbg.errors import DumpError, DumpNotFoundError, DumpVersionError
from tests.dump.written import write

RUN = {"kind": "run", "environment": {"framework": "t", "version": "1", "device": "cpu"}}
EVENT: dict[str, Any] = {
    "kind": "event",
    "step": 1,
    "call": 0,
    "micro": 0,
    "rank": 0,
    "phase": "forward",
    "role": "output",
    "name": "a",
    "slot": "",
    "dtype": "float32",
    "stored": "float32",
    "shape": [2],
    "at": 0,
    "nbytes": 8,
    "digest": schema.digest(np.zeros(8, np.uint8), "float32", (2,)),
}


def make(
    path: Path,
    *lines: object,
    arena: int = 64,
    edit: Callable[[h5py.File], None] | None = None,
    version: object = 1,
) -> Path:
    """A file in the dump's layout with these lines in its log."""
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["format"] = "paritydbg-dump"
        file.attrs["version"] = version
        text = "".join(
            (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines
        )
        file.create_dataset("log", data=np.frombuffer(text.encode(), np.uint8))
        file.create_dataset(
            "arena", shape=(arena,), maxshape=(None,), chunks=(1 << 20,), dtype="u1"
        )
        if edit is not None:
            edit(file)
    return path


def refused(path: Path, kind: type[DumpError] = DumpError) -> str:
    """The one-line message of the refusal."""
    with pytest.raises(kind) as caught:
        open_dump(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_the_made_file_itself_is_fine(tmp_path: Path) -> None:
    with open_dump(make(tmp_path / "a.h5", RUN, EVENT)) as dump:
        assert dump.load(dump.events[0]).tolist() == [0.0, 0.0]


def test_missing_says_how_to_record_it(tmp_path: Path) -> None:
    assert "paritydbg run -o" in refused(tmp_path / "nope.h5", DumpNotFoundError)


def test_a_folder_is_no_dump(tmp_path: Path) -> None:
    assert "folder" in refused(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89HDF\r\n\x1a\n", bytes(range(256)) * 40])
def test_other_content_is_no_dump(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(content)
    refused(path)


def test_a_file_cut_short_anywhere_is_refused_or_still_right(tmp_path: Path) -> None:
    tensors = {str(i): np.full(40_000, i, np.int64) for i in range(12)}
    whole = write(tmp_path / "whole.h5", tensors).read_bytes()
    path = tmp_path / "cut.h5"
    for length in range(0, len(whole), len(whole) // 23):
        path.write_bytes(whole[:length])
        try:
            with open_dump(path) as dump:
                for event in dump.events:
                    assert np.all(dump.load(event) == int(event.key.name))
        except DumpError:
            continue


def test_values_that_were_changed_are_refused_when_asked_for(tmp_path: Path) -> None:
    def edit(file: h5py.File) -> None:
        file["arena"][:8] = 1

    path = make(tmp_path / "a.h5", RUN, EVENT, edit=edit)
    with open_dump(path) as dump, pytest.raises(DumpError, match="not those that were written"):
        dump.load(dump.events[0])


def test_another_hdf5_file_is_told_apart(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.ones(3)
    assert "no paritydbg dump" in refused(tmp_path / "a.h5")


def test_a_newer_version_asks_for_an_update(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", RUN, version=3)
    assert "update paritydbg" in refused(path, DumpVersionError)


@pytest.mark.parametrize("version", ["1", 0, -3, 1.5])
def test_a_version_that_is_none_is_damage(tmp_path: Path, version: object) -> None:
    refused(make(tmp_path / "a.h5", RUN, version=version))


@pytest.mark.parametrize("name", ["arena", "log"])
def test_no_link_is_followed(tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["bytes"] = np.frombuffer(b"secret" * 100, np.uint8)

    def external(file: h5py.File) -> None:
        del file[name]
        file[name] = h5py.ExternalLink(str(secret), "/bytes")

    def soft(file: h5py.File) -> None:
        file["other"] = np.zeros(600, np.uint8)
        del file[name]
        file[name] = h5py.SoftLink("/other")

    for number, edit in enumerate((external, soft)):
        refused(make(tmp_path / f"{number}.h5", RUN, EVENT, edit=edit))


def test_raw_data_in_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "passwords").write_bytes(b"secret" * 100)

    def edit(file: h5py.File) -> None:
        del file["arena"]
        file.create_dataset("arena", (600,), "u1", external=[(str(tmp_path / "passwords"), 0, 600)])

    refused(make(tmp_path / "a.h5", RUN, EVENT, edit=edit))


@pytest.mark.parametrize("what", ["group", "float", "matrix", "missing", "compressed"])
def test_an_arena_of_another_kind_is_refused(tmp_path: Path, what: str) -> None:
    def edit(file: h5py.File) -> None:
        del file["arena"]
        if what == "group":
            file.create_group("arena")
        elif what == "float":
            file["arena"] = np.ones(64)
        elif what == "matrix":
            file["arena"] = np.ones((8, 8), np.uint8)
        elif what == "compressed":
            # Small in the file, huge in memory.
            file.create_dataset("arena", (1 << 28,), "u1", compression="gzip", chunks=(1 << 20,))

    refused(make(tmp_path / "a.h5", RUN, EVENT, edit=edit))


@pytest.mark.parametrize(
    "change",
    [
        {"at": 60},
        {"at": -8},
        {"at": 1.5},
        {"nbytes": 7},
        {"nbytes": -8},
        {"shape": [1 << 40], "nbytes": 1 << 42},
        {"shape": [1 << 40, 1 << 40]},
        {"shape": [-2]},
        {"shape": ["2"]},
        {"shape": "2"},
        {"shape": [1] * 40},
        {"stored": "object"},
        {"stored": "O"},
        {"stored": "float32, float32"},
        {"step": -1},
        {"step": True},
        {"phase": "sideways"},
        {"role": 3},
        {"name": ["a"]},
        {"name": None},
    ],
)
def test_an_impossible_entry_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    refused(make(tmp_path / "a.h5", RUN, {**EVENT, **change}))


def test_a_huge_arena_that_is_not_there_is_not_allocated(tmp_path: Path) -> None:
    size = 1 << 40
    entry = {**EVENT, "shape": [size // 4], "nbytes": size}
    refused(make(tmp_path / "a.h5", RUN, entry, arena=size))


@pytest.mark.parametrize(
    "line", ["{", "[1, 2]", "3", '{"kind": "event"}', '{"kind": "surprise"}', "[" * 100_000]
)
def test_a_line_that_is_no_entry_is_damage(tmp_path: Path, line: str) -> None:
    refused(make(tmp_path / "a.h5", RUN, line))


def test_a_log_without_its_first_line_is_damage(tmp_path: Path) -> None:
    refused(make(tmp_path / "a.h5", EVENT))
