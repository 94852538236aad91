"""Where and how a torch run is made."""

from __future__ import annotations

import hashlib
import platform
import random

import numpy as np
import torch

from paritydbg.model.record import Attributes, Environment


def environment() -> Environment:
    """Version, device, precision and determinism settings, and a digest of the random state."""
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    device = f"cuda:{torch.cuda.current_device()}" if cuda else "cpu"
    return Environment(
        framework="torch",
        version=torch.__version__,
        device=device,
        python=platform.python_version(),
        settings=_settings(),
        random_state=_random_state(cuda),
        generator=torch.get_rng_state().numpy().tobytes().hex(),
    )


def restore_generator(environment: Environment) -> bool:
    """Draw from now on as the run of that environment did, on the host; whether that can be done."""
    if environment.framework != "torch" or not environment.generator:
        return False
    try:
        state = bytearray.fromhex(environment.generator)
        torch.set_rng_state(torch.frombuffer(state, dtype=torch.uint8))
    except (ValueError, RuntimeError):
        # Another torch's generator, or no state at all.
        return False
    return True


def _settings() -> Attributes:
    settings: dict[str, str | int | float | bool | None] = {
        "autocast_cpu": torch.is_autocast_enabled("cpu"),
        "autocast_cuda": torch.is_autocast_enabled("cuda"),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "default_dtype": str(torch.get_default_dtype()),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "threads": torch.get_num_threads(),
        "tf32_cudnn": torch.backends.cudnn.allow_tf32,
        "tf32_matmul": torch.backends.cuda.matmul.allow_tf32,
    }
    return tuple(sorted(settings.items()))


def _random_state(cuda: bool) -> str:
    """A digest over the generators of torch, numpy and Python; looks, does not draw."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(torch.get_rng_state().numpy().tobytes())
    if cuda:
        digest.update(torch.cuda.get_rng_state().numpy().tobytes())
    digest.update(repr(np.random.get_state(legacy=True)[1:]).encode())
    digest.update(repr(random.getstate()).encode())
    return digest.hexdigest()
