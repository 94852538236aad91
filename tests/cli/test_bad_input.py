"""Every kind of bad input is one line on stderr and exit code 2, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import paritydbg
from paritydbg.cli.main import exit_code


def dump(
    path: Path, net: nn.Module | None = None, steps: str = "1-2", backward: bool = True
) -> str:
    """A small dump, and its path as a person would type it."""
    net = net if net is not None else nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    with paritydbg.capture(net, path, steps=steps):
        for _ in range(3):
            output = net(torch.ones(2, 4))
            if backward:
                output.sum().backward()
    return str(path)


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command line, which must end with 2 and one line; that line."""

    def run(*arguments: str) -> str:
        assert exit_code(list(arguments)) == 2
        told = capsys.readouterr()
        assert told.out == ""
        lines = [line for line in told.err.splitlines() if line.strip()]
        assert len(lines) == 1, told.err
        assert "Traceback" not in told.err
        return lines[0]

    return run


def test_a_missing_dump(tmp_path: Path, fails: Callable[..., str]) -> None:
    there = dump(tmp_path / "a.h5")
    line = fails("bisect", there, str(tmp_path / "nope.h5"))
    assert "does not exist" in line
    assert "paritydbg run -o" in line


def test_a_truncated_dump(tmp_path: Path, fails: Callable[..., str]) -> None:
    there = dump(tmp_path / "a.h5")
    cut = tmp_path / "cut.h5"
    cut.write_bytes((tmp_path / "a.h5").read_bytes()[:3000])
    assert "cut.h5" in fails("diff", there, str(cut))


def test_a_file_that_is_no_dump(tmp_path: Path, fails: Callable[..., str]) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    assert "no paritydbg dump" in fails("show", str(text))


def test_two_dumps_of_nothing_in_common(tmp_path: Path, fails: Callable[..., str]) -> None:
    one = dump(tmp_path / "a.h5", nn.Sequential(nn.Linear(4, 3)))

    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.ones(7, 11, 5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.table * x.sum()

    other = Other()
    path = tmp_path / "b.h5"
    with paritydbg.capture({"something": other}, path, roles=["parameter"]):
        other(torch.ones(2, 4)).sum().backward()
    assert "nothing in common" in fails("bisect", one, str(path))


def test_steps_that_do_not_meet(tmp_path: Path, fails: Callable[..., str]) -> None:
    one, other = dump(tmp_path / "a.h5", steps="1"), dump(tmp_path / "b.h5", steps="2-3")
    line = fails("bisect", one, other)
    assert "no step in common" in line
    assert "--steps" in line


def test_a_dump_without_backward_is_compared_and_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    one = dump(tmp_path / "a.h5", net, steps="1")
    other = dump(tmp_path / "b.h5", net, steps="1", backward=False)
    assert exit_code(["bisect", one, other]) == 0
    assert "has no backward pass" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--steps", "0"], "step"),
        (["--steps", "three"], "step"),
        (["--role", "weights"], "role"),
        (["--rename", "abc"], "OLD=NEW"),
        (["--weights-from", "nope.h5"], "does not exist"),
    ],
)
def test_options_of_run_that_cannot_be_used(
    tmp_path: Path, fails: Callable[..., str], options: list[str], says: str
) -> None:
    out = tmp_path / "a.h5"
    assert says in fails("run", "-o", str(out), *options, "--", "python", "-c", "pass")
    assert not out.exists()


def test_a_program_that_is_not_there(tmp_path: Path, fails: Callable[..., str]) -> None:
    line = fails("run", "-o", str(tmp_path / "a.h5"), "--", "pythn", "train.py")
    assert "pythn is no program here" in line


def test_an_output_in_a_folder_that_is_not_there(tmp_path: Path, fails: Callable[..., str]) -> None:
    line = fails("run", "-o", str(tmp_path / "x" / "a.h5"), "--", "python", "-c", "pass")
    assert "mkdir -p" in line


def test_a_script_that_captures_nothing(tmp_path: Path, fails: Callable[..., str]) -> None:
    line = fails("run", "-o", str(tmp_path / "a.h5"), "--", "python", "-c", "pass")
    assert "nothing was captured" in line
    assert "--model" in line
    assert not (tmp_path / "a.h5").exists()


def test_filters_that_leave_nothing(tmp_path: Path, fails: Callable[..., str]) -> None:
    one = dump(tmp_path / "a.h5")
    assert "no compared pair fits" in fails("diff", one, one, "--layer", "nowhere.*")


def test_a_map_that_names_what_is_not_there(tmp_path: Path, fails: Callable[..., str]) -> None:
    one = dump(tmp_path / "a.h5")
    path = tmp_path / "map.yaml"
    path.write_text("layers: {encoder: '0'}")
    assert "'encoder'" in fails("bisect", one, one, "--map", str(path))


def test_an_api_that_nobody_knows(fails: Callable[..., str]) -> None:
    assert "LayerNorm" in fails("apimap", "nn.LayrNorm")


@pytest.mark.parametrize("into", ["nowhere:make", "os:nothing", "os.path", "builtins:int"])
def test_a_net_that_transplant_cannot_make(
    tmp_path: Path, fails: Callable[..., str], into: str
) -> None:
    out = tmp_path / "port.pth"
    fails("transplant", dump(tmp_path / "a.h5"), "--into", into, "-o", str(out))
    assert not out.exists()


def test_weights_that_do_not_fit(
    tmp_path: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wide_net.py").write_text(
        "from torch import nn\n"
        "def make_net():\n    return nn.Sequential(nn.Linear(9, 3), nn.Linear(3, 2))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "port.pth"
    line = fails(
        "transplant", dump(tmp_path / "a.h5"), "--into", "wide_net:make_net", "-o", str(out)
    )
    assert "(3, 4)" in line
    assert "(3, 9)" in line
    assert not out.exists()


def test_a_bisection_of_half_a_pair(tmp_path: Path, fails: Callable[..., str]) -> None:
    assert "give both scripts" in fails("bisect", "--reference", "python train.py")
    ref = dump(tmp_path / "ref.h5")
    assert "two dumps" in fails("bisect", ref)
    assert "not both" in fails("bisect", ref, ref, "--reference", "a", "--port", "b")
    assert "No closing quotation" in fails("bisect", "--reference", "a 'b", "--port", "c")


def test_a_forced_replay_that_cannot_be(tmp_path: Path, fails: Callable[..., str]) -> None:
    out, command = str(tmp_path / "o.h5"), ("--", "python", "-c", "")
    assert "--forced-by" in fails("run", "-o", out, "--free", out, *command)
    ref = dump(tmp_path / "ref.h5")
    assert "--noise" in fails("run", "-o", out, "--noise", "--forced-by", ref, *command)
    missing = str(tmp_path / "none.h5")
    assert "does not exist" in fails("run", "-o", out, "--forced-by", missing, *command)


def test_a_script_that_fails_in_a_round(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(3)", encoding="utf-8")
    command = f"python {script}"
    asked = ["bisect", "--reference", command, "--port", command, "--keep", str(tmp_path / "k")]
    assert exit_code(asked) == 2
    assert "exit code 3" in capfd.readouterr().err
