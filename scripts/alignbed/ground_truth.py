"""What is true of two recordings: which layers, parameters and calls stand for each other.

It follows from what rides on the layers and from the log of calls, never from a name or a value.
"""

from __future__ import annotations

from dataclasses import dataclass

from alignbed.record import Place, Recorded

Names = tuple[str, ...]


@dataclass(frozen=True)
class Truth:
    """The pairs that a perfect alignment makes, and where nothing is claimed.

    Attributes:
        layers, parameters, calls: pairs of the reference's with the port's.
        free: names of layers, of each side, for which any partner will do.
        free_calls: likewise for what their calls are paired with.
        free_parameters: likewise for parameters.
    """

    layers: frozenset[tuple[str, str]]
    parameters: frozenset[tuple[Names, Names]]
    calls: frozenset[tuple[tuple[Place, ...], tuple[Place, ...]]]
    free: tuple[frozenset[str], frozenset[str]]
    free_calls: tuple[frozenset[str], frozenset[str]]

    def turned(self) -> Truth:
        """The same with the sides exchanged."""
        return Truth(
            frozenset((b, a) for a, b in self.layers),
            frozenset((b, a) for a, b in self.parameters),
            frozenset((b, a) for a, b in self.calls),
            self.free[::-1],
            self.free_calls[::-1],
        )


def truth_of(reference: Recorded, port: Recorded) -> Truth:
    """What is true of a reference and a port that was made from it."""
    free_port = frozenset(name for name, layer in port.layers.items() if layer.free)
    free_reference = frozenset(
        layer.layer for layer in port.layers.values() if layer.free and layer.layer is not None
    )
    blurred = frozenset(n for n, layer in port.layers.items() if layer.free_events)
    of_blurred = frozenset(port.layers[name].layer or "" for name in blurred)
    if free_port:
        # What is wrapped and what wraps it end the same way round: either may stand for the net.
        free_reference |= {""} if "" in free_port else frozenset()
    layers = frozenset(
        (layer.layer, name)
        for name, layer in port.layers.items()
        if layer.layer is not None and name not in free_port
    )
    layers = _single(layers)
    return Truth(
        layers,
        _parameters(reference, port),
        _calls(reference, port),
        (free_reference, free_port),
        (free_reference | of_blurred, free_port | blurred),
    )


def _single(layers: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The pairs of layers that have just one partner; of one against several only calls are told."""
    counts: dict[str, int] = {}
    for reference, _ in layers:
        counts[reference] = counts.get(reference, 0) + 1
    return frozenset(pair for pair in layers if counts[pair[0]] == 1)


def _parameters(reference: Recorded, port: Recorded) -> frozenset[tuple[Names, Names]]:
    """Pairs of parameters, tied ones under the first of their names on either side."""
    found = set()
    for name, wanted in port.parameters.items():
        if wanted and all(one in reference.ties for one in wanted):
            found.add((tuple(reference.ties[one] for one in wanted), (name,)))
    return frozenset(found)


def _calls(
    reference: Recorded, port: Recorded
) -> frozenset[tuple[tuple[Place, ...], tuple[Place, ...]]]:
    """Calls by their layers' origin and their number in the pass; cut passes as one against several."""
    mine = [_by_origin(one, reference) for one in reference.passes]
    yours = [_by_origin(one, port) for one in port.passes]
    found: set[tuple[tuple[Place, ...], tuple[Place, ...]]] = set()
    cut = len(yours) // len(mine)
    for number, calls in enumerate(mine):
        pieces = yours[number * cut : (number + 1) * cut]
        for layer, places in calls.items():
            if all(len(piece.get(layer, ())) == len(places) for piece in pieces):
                for at, place in enumerate(places):
                    found.add(((place,), tuple(piece[layer][at] for piece in pieces)))
    return frozenset(found)


def _by_origin(places: tuple[Place, ...], side: Recorded) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for name, number in places:
        layer = side.layers[name].layer
        if layer is not None:
            found.setdefault(layer, []).append((name, number))
    return found
