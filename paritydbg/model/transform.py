"""Layout changes between the two sides: values only, which tensors they join is in `pair`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["identity", "reshape", "permute", "concatenate", "split", "take"]
Array = NDArray[Any]


@dataclass(frozen=True)
class Transform:
    """Turns a group of the reference's arrays into the port's layout.

    Attributes:
        kind: what is done; ``identity`` joins tensors one to one.
        shape: the port's shape, for ``reshape``.
        axes: the order of the reference's axes, for ``permute``.
        axis: the axis that is joined, cut or indexed.
        sections: lengths of the pieces along ``axis``, for ``split``.
        index: the order in which entries along ``axis`` are taken, for ``take`` (permuted channels,
            other gate orders).
    """

    kind: Kind = "identity"
    shape: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    axis: int = 0
    sections: tuple[int, ...] = ()
    index: tuple[int, ...] = ()

    def apply(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """The arrays in the port's layout.

        Raises:
            ValueError: the shapes do not allow it; the text gives both shapes.
        """
        if self.kind == "concatenate":
            return (np.concatenate(list(arrays), axis=self.axis),)
        if self.kind == "split":
            (whole,) = arrays
            if sum(self.sections) != whole.shape[self.axis]:
                raise ValueError(
                    f"cannot split axis {self.axis} of shape {whole.shape} into {self.sections}"
                )
            cuts = np.cumsum(self.sections)[:-1].tolist()
            return tuple(np.split(whole, cuts, axis=self.axis))
        return tuple(self._one(array) for array in arrays)

    def inverse(self, reference_shape: tuple[int, ...]) -> Transform:
        """The transform that leads one array back from the port's layout to the reference's.

        Raises:
            ValueError: for ``concatenate`` and ``split``, whose inverse needs the pieces' lengths.
        """
        if self.kind == "identity":
            return self
        if self.kind == "reshape":
            return Transform("reshape", shape=reference_shape)
        if self.kind == "permute":
            return Transform("permute", axes=tuple(int(i) for i in np.argsort(self.axes)))
        if self.kind == "take":
            index = tuple(int(i) for i in np.argsort(self.index))
            return Transform("take", axis=self.axis, index=index)
        raise ValueError(
            f"a transform of kind {self.kind} has no inverse without the pieces' lengths"
        )

    def describe(self) -> str:
        """The transform in a few words: ``permute (1, 0)``; ``""`` for identity."""
        if self.kind == "identity":
            return ""
        detail = {
            "reshape": f"to {self.shape}",
            "permute": f"{self.axes}",
            "concatenate": f"along axis {self.axis}",
            "split": f"along axis {self.axis} into {self.sections}",
            "take": f"along axis {self.axis}",
        }[self.kind]
        return f"{self.kind} {detail}"

    def _one(self, array: Array) -> Array:
        if self.kind == "reshape":
            return array.reshape(self.shape)
        if self.kind == "permute":
            return np.transpose(array, self.axes)
        if self.kind == "take":
            return np.take(array, self.index, axis=self.axis)
        return array


IDENTITY = Transform()
