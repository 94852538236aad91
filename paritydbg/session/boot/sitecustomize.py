"""Runs first in every Python process under ``paritydbg run``: puts the capture in, then steps aside.

Python imports a module of this name at start-up. The launcher puts this folder first on the path;
a sitecustomize of the user's own, which this one hides, is run after it.
"""

import os
import sys


def _run_hidden_one() -> None:
    """Run the sitecustomize that would have been imported without this folder on the path."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if "PARITYDBG_ORDER" in os.environ:
    from paritydbg.session.bootstrap import install

    install(os.environ["PARITYDBG_ORDER"])
_run_hidden_one()
