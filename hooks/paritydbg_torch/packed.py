"""Packed sequences in the padded form that other frameworks know, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.nn.utils.rnn import PackedSequence


class Padding:
    """How a packed sequence's rows lie in the padded tensor, in the user's order of the batch."""

    def __init__(self, packed: PackedSequence, batch_first: bool) -> None:
        sizes = packed.batch_sizes.numpy()
        self._shape = (len(sizes), int(sizes[0]) if len(sizes) else 0)
        self._time = np.repeat(np.arange(len(sizes)), sizes)
        self._row = np.concatenate([np.arange(size) for size in sizes])
        if packed.sorted_indices is not None:
            self._row = packed.sorted_indices.cpu().numpy()[self._row]
        self._batch_first = batch_first

    def pad(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows (sum of lengths, …) as (batch, time, …) or (time, batch, …), zeros beyond the end."""
        padded = np.zeros((*self._shape, *rows.shape[1:]), rows.dtype)
        padded[self._time, self._row] = rows
        return np.ascontiguousarray(padded.swapaxes(0, 1)) if self._batch_first else padded

    def pack(self, padded: NDArray[Any]) -> NDArray[Any]:
        """The rows (sum of lengths, …) of a padded array; what lies beyond the end is dropped."""
        by_time = padded.swapaxes(0, 1) if self._batch_first else padded
        return np.ascontiguousarray(by_time[self._time, self._row])
