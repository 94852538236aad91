"""How a sketch lies in a dump, and of which tensors one is stored in place of the values."""

from __future__ import annotations

import numpy as np
import xxhash
from numpy.typing import NDArray

from paritydbg.measure.sketch import BUCKETS, Sketch
from paritydbg.model.event import EventKey, Phase, Role, Values

_LAYOUT = np.dtype(
    [
        ("check", "<u8"),
        ("count", "<u8"),
        ("nans", "<u8"),
        ("infs", "<u8"),
        ("minus_infs", "<u8"),
        ("pattern", "<u8"),
        ("l2", "<f8"),
        ("minimum", "<f8"),
        ("maximum", "<f8"),
        ("mean", "<f8"),
        ("buckets", "<f8", (BUCKETS,)),
    ]
)
# Bytes of a stored sketch; a tensor of no more is stored as it is.
SKETCH_BYTES = _LAYOUT.itemsize
# Whole numbers and flags (labels, indices, masks) are worth more than their norm: up to this many
# bytes they stay values.
_WHOLE_BYTES = 1 << 20


class Choice:
    """Tells which tensors of a run are stored as sketches; remembers what a run started from."""

    def __init__(self) -> None:
        # The step in which a parameter or buffer was first seen before its step.
        self._started: dict[tuple[Role, str, int], int] = {}

    def sketches(self, key: EventKey, values: Values) -> bool:
        """Whether this tensor is stored as a sketch.

        Not what a port starts from: the batch, parameters and buffers before the first step.
        """
        if key.role is Role.BATCH or self._starts(key):
            return False
        kind = values.array.dtype.kind
        whole = kind in "iub" and values.dtype != "bfloat16"
        return values.array.nbytes > (_WHOLE_BYTES if whole else SKETCH_BYTES)

    def _starts(self, key: EventKey) -> bool:
        if key.phase is not Phase.FORWARD or key.role not in (Role.PARAMETER, Role.BUFFER):
            return False
        return self._started.setdefault((key.role, key.name, key.rank), key.step) == key.step


def packed(sketch: Sketch) -> NDArray[np.uint8]:
    """The bytes of a sketch, a checksum first."""
    one = np.zeros(1, _LAYOUT)
    for name in _LAYOUT.names or ():
        if name != "check":
            one[0][name] = getattr(sketch, name)
    data = one.view(np.uint8)
    one["check"] = xxhash.xxh3_64_intdigest(data[8:].data)
    return data


def unpacked(data: NDArray[np.uint8]) -> Sketch | None:
    """The sketch that the bytes hold, None where they are damaged.

    Args:
        data: `SKETCH_BYTES` bytes.
    """
    one = data.view(_LAYOUT)[0]
    if int(one["check"]) != xxhash.xxh3_64_intdigest(data[8:].data):
        return None
    return Sketch(
        count=int(one["count"]),
        l2=float(one["l2"]),
        minimum=float(one["minimum"]),
        maximum=float(one["maximum"]),
        mean=float(one["mean"]),
        nans=int(one["nans"]),
        infs=int(one["infs"]),
        minus_infs=int(one["minus_infs"]),
        pattern=int(one["pattern"]),
        buckets=np.array(one["buckets"], np.float64),
    )
