"""One layer's weights given to another framework's layer, and what that one makes of them brought back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from paritydbg.model.pair import ParameterPair
from paritydbg.model.record import LayerRecord, ParameterRecord
from paritydbg.model.trial import Trial
from paritydbg.weights.pairing import Side, pair_sides
from paritydbg.weights.transplanting import fit

Array = NDArray[Any]


class LoneLayer:
    """A trial's weights beside the layer that they are tried in.

    Args:
        trial: with the reference's layer, parameters and values.
        layers, parameters, current: of the layer that was built, by its own names.
    """

    def __init__(
        self,
        trial: Trial,
        layers: Sequence[LayerRecord],
        parameters: Sequence[ParameterRecord],
        current: Mapping[str, Array],
    ) -> None:
        reference = () if trial.layer is None else (trial.layer,)
        self._shapes = {name: array.shape for name, array in trial.values.items()}
        self._parameters = tuple(parameters)
        self._pairs: tuple[ParameterPair, ...] = tuple(
            pair_sides(
                Side(reference, trial.parameters, dict(trial.values)),
                Side(tuple(layers), self._parameters, dict(current)),
            ).parameters
        )

    def fitted(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """The reference's values in the built layer's names and layout.

        Raises:
            WeightsError: shapes that cannot be made to fit.
        """
        return dict(fit(self._pairs, values, self._parameters).values)

    def back(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """The built layer's values in the reference's names and layout, where these can be told."""
        found: dict[str, Array] = {}
        for pair in self._pairs:
            if len(pair.reference) != 1 or len(pair.port) != 1 or pair.port[0] not in values:
                continue
            (name,) = pair.reference
            array = values[pair.port[0]]
            try:
                (found[name],) = pair.transform.inverse(self._shapes[name]).apply([array])
            except (KeyError, ValueError):
                continue
        return found
