"""Which transform leads from one array's layout to another's; names and layers do not matter here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritydbg.model.transform import IDENTITY, Transform

Shape = tuple[int, ...]

# From (height, width, in, out) to (out, in, height, width) and back, channels last, matrices: tried
# before other orders, which only values can tell apart.
_KNOWN_ORDERS = (
    (1, 0),
    (2, 1, 0),
    (3, 2, 0, 1),
    (2, 3, 1, 0),
    (0, 3, 1, 2),
    (0, 2, 3, 1),
)


def plain(shape: Shape) -> Shape:
    """The shape without axes of length one, in ascending order: equal for all layouts of one tensor."""
    return tuple(sorted(length for length in shape if length != 1))


def by_shape(reference: Shape, port: Shape) -> Transform | None:
    """The transform that the shapes alone demand, None where they cannot be made to fit.

    Equal shapes are left as they are; axes of length one come and go; a different order of axes is
    taken where just one order fits, or a usual one among several.
    """
    if reference == port:
        return IDENTITY
    if [n for n in reference if n != 1] == [n for n in port if n != 1]:
        return Transform("reshape", shape=port)
    if len(reference) != len(port) or sorted(reference) != sorted(port):
        return None
    orders = list(_orders(reference, port))
    known = [axes for axes in _KNOWN_ORDERS if axes in orders]
    if len(orders) == 1 or known:
        return Transform("permute", axes=known[0] if known else orders[0])
    return None


def by_value(reference: NDArray[Any], port: NDArray[Any]) -> Transform | None:
    """The transform that turns the reference's values exactly into the port's, None if none does."""
    if reference.size != port.size:
        return None
    if reference.shape == port.shape and np.array_equal(reference, port):
        return IDENTITY
    if reference.shape != port.shape and np.array_equal(reference.ravel(), port.ravel()):
        return Transform("reshape", shape=port.shape)
    if reference.ndim == port.ndim:
        for axes in _orders(reference.shape, port.shape):
            if np.array_equal(np.transpose(reference, axes), port):
                return Transform("permute", axes=axes)
    if reference.shape == port.shape and reference.ndim:
        index = _row_order(reference, port)
        if index is not None:
            return Transform("take", axis=0, index=index)
    return None


def transform_between(
    reference: Shape,
    port: Shape,
    reference_value: NDArray[Any] | None = None,
    port_value: NDArray[Any] | None = None,
) -> Transform | None:
    """The transform for two tensors known to be partners; values decide where shapes leave a choice.

    Equal shapes always give identity: values that differ there are a finding, not a layout.
    """
    if reference == port:
        return IDENTITY
    if reference_value is not None and port_value is not None and not constant(reference_value):
        proved = by_value(reference_value, port_value)
        if proved is not None:
            return proved
    return by_shape(reference, port)


def constant(array: NDArray[Any]) -> bool:
    """Whether all elements are equal (or there are none): such values identify nothing."""
    return array.size == 0 or bool(np.all(array == array.flat[0]))


def size(shape: Shape) -> int:
    """The number of elements."""
    return prod(shape)


def _orders(reference: Shape, port: Shape) -> Iterator[tuple[int, ...]]:
    """Orders of the reference's axes that give the port's shape, plain order left out; at most 24."""
    if len(reference) > 5:
        return
    fitting = (
        axes
        for axes in permutations(range(len(reference)))
        if tuple(reference[axis] for axis in axes) == port and axes != tuple(sorted(axes))
    )
    yield from islice(fitting, 24)


def _row_order(reference: NDArray[Any], port: NDArray[Any]) -> tuple[int, ...] | None:
    """In which order the reference's rows make the port; None if they do not, or not in one way."""
    if reference.dtype != port.dtype:
        return None
    rows: dict[bytes, int] = {}
    for number, row in enumerate(reference):
        if rows.setdefault(row.tobytes(), number) != number:
            return None
    index = [rows.get(row.tobytes(), -1) for row in port]
    if -1 in index or len(set(index)) != len(index):
        return None
    return tuple(index)
