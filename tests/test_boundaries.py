"""What the core may import, what it says it offers, and how light it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import paritydbg

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("torch", "mindspore", "numpy", "h5py", "pandas", "rich", "yaml")


def imported_by(statement: str, names: tuple[str, ...]) -> set[str]:
    """Which of the modules a fresh interpreter has after the statement."""
    code = f"import sys\n{statement}\nprint(*[n for n in {names!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert imported_by("import paritydbg", HEAVY) == set()


def test_the_help_imports_nothing_heavy() -> None:
    ask = "from paritydbg.cli.main import exit_code\nexit_code(['--help'])"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{ask}\nprint(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(HEAVY).isdisjoint(done.stderr.split())


def test_no_module_of_the_core_imports_a_framework() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "paritydbg").rglob("*.py"))
        if path.stem not in ("__init__", "__main__", "sitecustomize")
    ]
    statement = f"import importlib\nfor name in {modules!r}: importlib.import_module(name)"
    assert imported_by(statement, ("torch", "mindspore")) == set()


def test_only_the_dump_package_imports_h5py() -> None:
    importers = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "paritydbg").rglob("*.py"))
        if any(
            line.strip().startswith(("import h5py", "from h5py"))
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    ]
    assert importers
    assert all(name.startswith("paritydbg/dump/") for name in importers)


def test_every_public_name_exists_and_none_is_missing_from_all() -> None:
    for name in paritydbg.__all__:
        assert getattr(paritydbg, name) is not None
    assert set(dir(paritydbg)) == {*paritydbg.__all__, "__version__"}
