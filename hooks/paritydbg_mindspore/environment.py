"""Where and how a MindSpore run is made; nothing here runs an operator."""

from __future__ import annotations

import hashlib
import platform
import random

import mindspore as ms
import numpy as np

from paritydbg.model.record import Environment


def environment() -> Environment:
    """Version, device, mode and determinism settings, and a digest of the host's random state."""
    settings: dict[str, str | int | float | bool | None] = {
        "deterministic": str(ms.get_context("deterministic")),
        "jit_level": str(ms.get_context("jit_level")),
        "mode": "PYNATIVE" if ms.get_context("mode") == ms.PYNATIVE_MODE else "GRAPH",
        "pynative_synchronize": bool(ms.get_context("pynative_synchronize")),
        "seed": ms.get_seed(),
    }
    return Environment(
        framework="mindspore",
        version=ms.__version__,
        device=str(ms.get_context("device_target")),
        python=platform.python_version(),
        settings=tuple(sorted(settings.items())),
        random_state=_random_state(),
    )


def _random_state() -> str:
    """A digest over what is known without an operator: MindSpore's seed, numpy, Python."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(repr(ms.get_seed()).encode())
    digest.update(repr(np.random.get_state(legacy=True)[1:]).encode())
    digest.update(repr(random.getstate()).encode())
    return digest.hexdigest()
