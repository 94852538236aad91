"""Fixed rules as other tools use them, each given every advantage that the product has.

All walk the product's own alignment (names, layouts and all) up the product's ladder, event by event in
order of execution, and name the first pair that their rule calls different. A parameter without a
partner and another shape count as different for every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg import open_dump
from paritydbg.align.dumps import align_dumps
from paritydbg.model.event import EventKey, Phase, Role
from paritydbg.verdict.compare import paired_values
from paritydbg.verdict.order import walk_order

Array = NDArray[Any]
# Whether a port's tensor differs from the reference's.
Rule = Callable[[Array, Array], bool]


def beyond_allclose(reference: Array, port: Array) -> bool:
    """Any element beyond numpy.allclose's rtol 1e-3, atol 1e-5."""
    return not np.allclose(port, reference, rtol=1e-3, atol=1e-5, equal_nan=True)


def beyond_relative_l2(reference: Array, port: Array) -> bool:
    """‖p - r‖ > 1e-4 ‖r‖, or elements that are not finite on one side alone."""
    if not _same_finite(reference, port):
        return True
    finite = np.isfinite(reference)
    r, p = reference[finite], port[finite]
    return bool(np.linalg.norm(p - r) > 1e-4 * np.linalg.norm(r))


def beyond_cosine(reference: Array, port: Array) -> bool:
    """msprobe's "Accuracy Reached or Not" is No.

    Cosine below 0.99 with a largest absolute error above 0.001, or cosine below 0.9, or an error above 1:
    its CompareConst, COS_THRESHOLD to MAX_ABS_ERR_MAX_THRESHOLD. Two tensors of zeros are alike.
    """
    if not _same_finite(reference, port):
        return True
    finite = np.isfinite(reference)
    r, p = reference[finite], port[finite]
    error = float(np.max(np.abs(p - r), initial=0.0))
    norms = float(np.linalg.norm(r) * np.linalg.norm(p))
    cosine = float(r @ p) / norms if norms else 1.0 if error == 0.0 else 0.0
    return (cosine < 0.99 and error > 0.001) or cosine < 0.9 or error > 1.0


RULES: Mapping[str, Rule] = {
    "allclose, rtol 1e-3, atol 1e-5": beyond_allclose,
    "relative L2 above 1e-4": beyond_relative_l2,
    "cosine and largest error, as msprobe grades": beyond_cosine,
}


def first_places(folder: Path, rules: Mapping[str, Rule] = RULES) -> dict[str, str]:
    """What each rule names first on the dumps in a folder, ``""`` where it names nothing."""
    found: dict[str, str] = {}
    with open_dump(folder / "ref.h5") as reference, open_dump(folder / "port.h5") as port:
        alignment = align_dumps(reference, port)
        lost = [
            event
            for event in reference.events
            if event.key.role is Role.PARAMETER
            and event.key.phase is Phase.FORWARD
            and event not in {e for pair in alignment.events for e in pair.reference}
        ]
        if lost:
            return dict.fromkeys(rules, lost[0].key.name)
        for pair in sorted(alignment.events, key=lambda pair: walk_order(pair.first)):
            waiting = [name for name in rules if name not in found]
            if not waiting:
                break
            left, right, problem = paired_values(pair, reference, port)
            for name in waiting:
                if problem or rules[name](_flat(left), _flat(right)):
                    found[name] = place_of(pair.first.key)
    return {name: found.get(name, "") for name in rules}


def place_of(key: EventKey) -> str:
    """A place as the case protocol names it."""
    if key.role is Role.BATCH:
        return f"inputs:{key.name}"
    if key.role is Role.STATE:
        return f"state:{key.name}"
    if key.role is Role.INPUT:
        return f"before {key.place}"
    if key.role is Role.GRAD_OUTPUT:
        return f"after {key.place}"
    updated = key.role is Role.PARAMETER and key.phase is Phase.UPDATE
    if updated or key.role is Role.GRAD_APPLIED:
        return f"step{key.step}:{key.name}"
    if key.role in (Role.OUTPUT, Role.GRAD_INPUT):
        return key.place
    return key.name or "(net)"


def _flat(array: Array) -> Array:
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    return array.astype(kind).reshape(-1)


def _same_finite(reference: Array, port: Array) -> bool:
    lost = ~np.isfinite(reference)
    return bool(np.array_equal(lost, ~np.isfinite(port))) and bool(
        np.array_equal(reference[lost], port[lost], equal_nan=True)
    )
