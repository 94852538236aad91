"""paritydbg finds the first layer where a MindSpore port parts from its PyTorch original, and says why.

The public API; every name is imported when it is first used, so that ``import paritydbg`` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paritydbg.dump.reader import open_dump
    from paritydbg.model.report import Report
    from paritydbg.pipeline import diff, plan_forcing
    from paritydbg.session.block import capture
    from paritydbg.weights.transplanting import transplant

__version__ = "0.1.0"

_HOME = {
    "Report": "paritydbg.model.report",
    "capture": "paritydbg.session.block",
    "diff": "paritydbg.pipeline",
    "open_dump": "paritydbg.dump.reader",
    "plan_forcing": "paritydbg.pipeline",
    "transplant": "paritydbg.weights.transplanting",
}

__all__ = ["Report", "capture", "diff", "open_dump", "plan_forcing", "transplant"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'paritydbg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
