"""The epsilon of optimizers that divide by a gradient's running size, and how far its place matters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.model.record import OptimizerRecord, RunRecord

Floats = NDArray[np.float64]

# Adam's two published forms place eps differently (Kingma and Ba 2015, end of section 2): no more
# than this is put down to it.
_MOST_BY_EPSILON = 0.05


def epsilons(run: RunRecord) -> list[tuple[str, tuple[float, float]]]:
    """Parameter -> (eps, beta2) for optimizers that divide by a gradient's running size."""
    found: list[tuple[str, tuple[float, float]]] = []
    for optimizer in run.optimizers:
        for group, names in zip(optimizer.groups, optimizer.parameters, strict=False):
            told = dict(group)
            eps = told.get("eps", told.get("epsilon"))
            if isinstance(eps, (int, float)) and _adapts(optimizer):
                found += [(name, (float(eps), _beta2(told))) for name in names]
    return found


def share_by_epsilon(epsilon: tuple[float, float], sizes: Floats, step: int) -> float:
    """How far two places of Adam's eps move an update of gradients of these sizes, as a share.

    m/(√v + eps) against m/(√v + eps·√(1 − beta2^t)) with v held by a constant gradient g:
    eps·(1/√(1 − beta2^t) − 1)/g.
    """
    eps, beta2 = epsilon
    corrected = math.sqrt(max(1e-12, 1.0 - beta2**step))
    smallest = float(np.sqrt(np.mean(sizes**2))) if sizes.size else 0.0
    if not smallest:
        return _MOST_BY_EPSILON
    return min(_MOST_BY_EPSILON, 4.0 * eps / corrected / smallest)


def _adapts(optimizer: OptimizerRecord) -> bool:
    return any(word in optimizer.type.lower() for word in ("adam", "rms", "adagrad", "lamb"))


def _beta2(told: Mapping[str, Any]) -> float:
    betas = told.get("betas")
    if isinstance(betas, (tuple, list)) and len(betas) > 1:
        return float(betas[1])
    second = told.get("beta2", told.get("alpha", 0.999))
    return float(second) if isinstance(second, (int, float)) else 0.999
