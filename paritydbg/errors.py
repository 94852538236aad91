"""Every exception that paritydbg raises on purpose.

    ParitydbgError                the root; the command line prints it as one line and exits with 2
    ├── UsageError (ValueError)       an option or argument that cannot be used
    ├── DumpError                     a dump that cannot be read or written
    │   ├── DumpNotFoundError (FileNotFoundError)
    │   ├── DumpVersionError              written by a newer format
    │   └── SketchOnlyError               values were asked for where only a sketch is stored
    ├── WeightsError (ValueError)     weights that do not fit or cannot be read
    ├── NothingCapturedError          hooks ran, and nothing came of it
    ├── NothingComparedError          two dumps with nothing in common
    └── AdapterError                  a framework is missing or does not do what is needed

Messages say what, the value it had, and what to do.
"""

from __future__ import annotations


class ParitydbgError(Exception):
    """Root of all errors raised on purpose; its text is one line that says what to do."""


class UsageError(ParitydbgError, ValueError):
    """An option or argument that cannot be used as given."""


class DumpError(ParitydbgError):
    """A dump that cannot be read or written."""


class DumpNotFoundError(DumpError, FileNotFoundError):
    """The named dump is not there."""


class DumpVersionError(DumpError):
    """The dump was written by a newer format than this version reads."""


class SketchOnlyError(DumpError):
    """Values were asked for of a tensor of which the dump holds only a sketch."""


class WeightsError(ParitydbgError, ValueError):
    """Weights that cannot be read, or do not fit the net they are meant for."""


class NothingCapturedError(ParitydbgError):
    """A run in which no event was captured."""


class NothingComparedError(ParitydbgError):
    """Two dumps of which not one event could be paired."""


class AdapterError(ParitydbgError):
    """A framework that is missing, or a hook package that cannot do what was asked."""


def in_a_line(error: BaseException) -> str:
    """An exception's class and the first line of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
