"""Finds the cases in folders: case files, and the faults of sample pairs."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    """One thing to run, faulty and clean.

    Attributes:
        name: as the table shows it.
        file: a case file, or a sample pair's folder.
        fault: the sample pair's fault, ``""`` for a case file.
        twin: cases with the same twin share one clean run.
        seed: of a sample pair's weights and batches.
        precision: of a sample pair's nets, see `precision`.
    """

    name: str
    file: Path
    fault: str = ""
    twin: str = ""
    seed: int = 0
    precision: str = "fp32"

    @property
    def is_sample(self) -> bool:
        """Whether it is a fault of a sample pair."""
        return bool(self.fault)

    def encoded(self) -> str:
        """The case as JSON text."""
        return json.dumps({**asdict(self), "file": str(self.file)})

    @staticmethod
    def decoded(text: str) -> Case:
        """The case in the text."""
        fields = json.loads(text)
        return Case(**{**fields, "file": Path(fields["file"])})


def seeded(cases: Iterable[Case], seeds: int) -> tuple[Case, ...]:
    """Every sample pair's case with each of so many seeds, ``pair/fault@1`` …; case files as they are."""
    done: list[Case] = []
    for case in cases:
        done.append(case)
        for seed in range(1, seeds if case.is_sample else 1):
            name, twin = f"{case.name}@{seed}", f"{case.twin}@{seed}"
            done.append(replace(case, name=name, twin=twin, seed=seed))
    return tuple(done)


def find_cases(folders: Iterable[Path], patterns: Sequence[str] = ()) -> tuple[Case, ...]:
    """The cases in the folders, sorted by name; ``patterns`` keeps names that contain one of them.

    Raises:
        ValueError: a folder that does not exist or holds no case.
    """
    found: list[Case] = []
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder} is no folder; give folders that hold case files")
        here = [
            Case(file.stem, file, twin=str(file))
            for file in sorted(folder.glob("*.py"))
            if _is_case(file)
        ]
        pairs = [folder] if (folder / "faults.py").is_file() else sorted(folder.glob("*/"))
        for pair in pairs:
            here += _sample_faults(pair)
        if not here:
            raise ValueError(
                f"{folder} holds no case file (one that sets EXPECTED) and no sample pair"
            )
        found += here
    return tuple(c for c in found if not patterns or any(p in c.name for p in patterns))


def _is_case(file: Path) -> bool:
    text = file.read_text(encoding="utf-8", errors="replace")
    return any(line.startswith("EXPECTED") for line in text.splitlines())


def _sample_faults(pair: Path) -> list[Case]:
    file = pair / "faults.py"
    if not file.is_file():
        return []
    faults = load_file(file).FAULTS
    return [Case(f"{pair.name}/{fault.name}", pair, fault.name, str(pair)) for fault in faults]


def load_file(file: Path):  # type: ignore[no-untyped-def]
    """The module in a file, with the file's folder and the repository importable."""
    for folder in (str(ROOT), str(file.parent)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(f"case_{file.parent.name}_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
