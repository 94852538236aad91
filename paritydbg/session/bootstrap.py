"""Prepares a launched process: waits for a framework to be imported, then lets its hook package in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# Import names of frameworks and, equal to them, of their hook packages' entry points.
FRAMEWORKS = ("torch", "mindspore")


def install(order: str) -> None:
    """Make the import of a framework put its hook package in; light, for it runs in every process."""
    sys.meta_path.insert(0, _Finder(order))


class _Finder(MetaPathFinder):
    """Wraps the loader of a framework's top package, once."""

    def __init__(self, order: str) -> None:
        self._order = order
        self._finding = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in FRAMEWORKS or self._finding:
            return None
        self._finding = True
        try:
            for finder in sys.meta_path:
                found = None if finder is self else finder.find_spec(name, path, target)
                if found is not None:
                    if found.loader is not None:
                        found.loader = _Loader(found.loader, name, self._order)
                    return found
        finally:
            self._finding = False
        return None


class _Loader(Loader):
    """Loads the framework as before, then lets its hook package patch it."""

    def __init__(self, loader: Loader, name: str, order: str) -> None:
        self._loader = loader
        self._name = name
        self._order = order

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        spec = module.__spec__
        if spec is not None:
            # Tools that look at the module later see the loader they expect.
            spec.loader = self._loader
        module.__loader__ = self._loader
        _let_in(self._name, self._order)


def _let_in(framework: str, text: str) -> None:
    from paritydbg.adapters import load_adapter
    from paritydbg.session.launch import Launch
    from paritydbg.session.order import LaunchOrder

    adapter = load_adapter(framework)
    adapter.launch(Launch(LaunchOrder.decoded(text), adapter))
