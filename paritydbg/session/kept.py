"""Which dumps of an earlier bisection still hold: marks of all that went into them."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from paritydbg.dump.reader import open_dump
from paritydbg.errors import DumpError
from paritydbg.session.order import LaunchOrder

NAME = "rounds.json"
# A script's own modules are looked for beside it, no further than this.
_MOST_FILES = 2000
_NOT_OWN = frozenset({"__pycache__", "site-packages", "node_modules"})


class Kept:
    """The marks of one folder's dumps, in a file beside them."""

    def __init__(self, folder: str) -> None:
        self._file = os.path.join(folder, NAME)
        self._marks = self._read()

    def mark(
        self,
        command: Sequence[str],
        order: LaunchOrder,
        made_from: Iterable[str],
        also: Iterable[str],
        files: Iterable[str] = (),
    ) -> str:
        """A digest of a run's inputs: command, the script's files, options, dumps it starts from.

        Args:
            also: further words that went into it.
            files: further files that went into it.
        """
        digest = hashlib.sha256()
        options = asdict(order)
        options.pop("out")
        parts: list[str] = [json.dumps(options, sort_keys=True), *command, *also]
        parts += [self._marks.get(os.path.basename(path), path) for path in made_from]
        for part in parts:
            digest.update(part.encode() + b"\0")
        for file in (*_files(command), *(Path(name) for name in files)):
            digest.update(str(file).encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()

    def holds(self, dump: str, mark: str) -> bool:
        """Whether the dump is there, whole, and was made from just that."""
        if self._marks.get(os.path.basename(dump)) != mark:
            return False
        try:
            with open_dump(dump) as found:
                return found.run.complete
        except DumpError:
            return False

    def note(self, dump: str, mark: str) -> None:
        """Remember what a dump was made from."""
        self._marks[os.path.basename(dump)] = mark
        folder = os.path.dirname(os.path.abspath(self._file))
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".rounds-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(self._marks, file, indent=1)
        os.replace(name, self._file)

    def _read(self) -> dict[str, str]:
        try:
            text = json.loads(Path(self._file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # Without marks every round is run again.
            return {}
        if not isinstance(text, dict):
            return {}
        return {str(key): str(value) for key, value in text.items()}


def _files(command: Sequence[str]) -> list[Path]:
    """Files that a command line names, and the Python files beside and below its scripts."""
    named = [Path(word) for word in command if os.path.isfile(word)]
    found = {path.resolve() for path in named if path.suffix}
    for script in [path for path in named if path.suffix == ".py"]:
        for module in islice(_modules(script.resolve().parent), _MOST_FILES):
            found.add(module)
    return sorted(found)


def _modules(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _NOT_OWN)
        for name in sorted(files):
            if name.endswith(".py"):
                yield Path(here, name)
