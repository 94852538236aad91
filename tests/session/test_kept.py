"""Dumps of earlier rounds: kept while nothing that went into them has changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paritydbg.dump.writer import DumpWriter
from paritydbg.model.event import EventKey, Phase, Role, Values
from paritydbg.model.record import Environment
from paritydbg.session.kept import NAME, Kept
from paritydbg.session.order import LaunchOrder


def dump(path: Path, complete: bool = True) -> str:
    writer = DumpWriter(str(path), Environment("torch", "2", "cpu"))
    writer.add(EventKey(1, Phase.FORWARD, Role.OUTPUT, "fc"), Values.of(np.ones(3)))
    writer.close(complete, "" if complete else "killed")
    return str(path)


def test_a_dump_holds_until_its_script_or_its_neighbour_changes(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    script, module = tmp_path / "src" / "train.py", tmp_path / "src" / "net.py"
    script.write_text("import net", encoding="utf-8")
    module.write_text("A = 1", encoding="utf-8")
    command, order = ("python", str(script)), LaunchOrder(out="x.h5")
    mark = Kept(str(tmp_path)).mark(command, order, (), ("ref",))
    Kept(str(tmp_path)).note(dump(tmp_path / "ref.h5"), mark)
    again = Kept(str(tmp_path))
    assert again.holds(str(tmp_path / "ref.h5"), again.mark(command, order, (), ("ref",)))
    module.write_text("A = 2", encoding="utf-8")
    assert not again.holds(str(tmp_path / "ref.h5"), again.mark(command, order, (), ("ref",)))


def test_other_options_or_another_source_make_another_mark(tmp_path: Path) -> None:
    kept = Kept(str(tmp_path))
    order = LaunchOrder(out="x.h5")
    marks = {
        kept.mark(("a",), order, (), ()),
        kept.mark(("b",), order, (), ()),
        kept.mark(("a",), LaunchOrder(out="x.h5", steps="2"), (), ()),
        kept.mark(("a",), order, ("ref.h5",), ()),
    }
    assert len(marks) == 4
    assert kept.mark(("a",), LaunchOrder(out="y.h5"), (), ()) in marks


def test_a_dump_that_was_cut_short_and_a_torn_file_of_marks_do_not_hold(tmp_path: Path) -> None:
    path = dump(tmp_path / "ref.h5", complete=False)
    Kept(str(tmp_path)).note(path, "m")
    assert not Kept(str(tmp_path)).holds(path, "m")
    (tmp_path / NAME).write_text("{", encoding="utf-8")
    assert not Kept(str(tmp_path)).holds(dump(tmp_path / "ref.h5"), "m")


def test_a_map_file_that_changes_makes_another_mark(tmp_path: Path) -> None:
    kept, order, map_file = Kept(str(tmp_path)), LaunchOrder(out="x.h5"), tmp_path / "map.yaml"
    map_file.write_text("layers: {a: b}", encoding="utf-8")
    mark = kept.mark(("a",), order, (), (), (str(map_file),))
    assert mark == kept.mark(("a",), order, (), (), (str(map_file),))
    map_file.write_text("layers: {a: c}", encoding="utf-8")
    assert mark != kept.mark(("a",), order, (), (), (str(map_file),))
