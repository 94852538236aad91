"""The whole alignment of two captured runs, in the order of its searches: the entry to this package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from paritydbg.align.calls import LAYER_ROLES, Call, Pass, Unit, passes_by_unit
from paritydbg.align.matching_calls import Known, SpotPair, match_calls, spots
from paritydbg.align.named import join_named, join_parameters
from paritydbg.align.passes import CUT, MatchedPasses, PassGroup, match_passes
from paritydbg.align.profiles import Profile, first_names, first_parameter_names, profiles
from paritydbg.align.slots import layout, match_slots
from paritydbg.align.user_map import UserMap
from paritydbg.model.event import Event, Role
from paritydbg.model.pair import Alignment, EventPair, LayerPair, ParameterPair, Unpaired
from paritydbg.model.record import RunRecord
from paritydbg.model.source import EventSource
from paritydbg.model.transform import Transform
from paritydbg.weights.files import initial_values
from paritydbg.weights.pairing import Pairing, Side, pair_sides
from paritydbg.weights.sequence import longest_chain


def align_dumps(
    reference: EventSource, port: EventSource, *, user_map: UserMap | None = None
) -> Alignment:
    """Which layers, parameters and events of two runs stand for each other.

    Tried in this order: the user's map, exact names, rename rules, equal values of parameters, the
    order of execution between those anchors, what layers own. Values of activations are never
    looked at: they mislead exactly where there is a fault.

    Raises:
        UsageError: the map names something that its side has not.
    """
    given = user_map or UserMap()
    sides = _side(reference), _side(port)
    looks = profiles(reference.run), profiles(port.run)
    units = (
        passes_by_unit(reference.events, reference.run.layers),
        passes_by_unit(port.events, port.run.layers),
    )
    first = _pair(sides, given, (), by_order=False)
    first_pairs = _by_event_names(first.layers, reference.run, port.run)
    executed = (*first_pairs, *_executed(units, Known(first_pairs, *looks)))
    final = _pair(sides, given, executed, by_order=True)
    layers = _by_event_names(final.layers, reference.run, port.run)
    joined = _Joined(Known(layers, *looks))
    for unit in units[0].keys() & units[1].keys():
        joined.add(match_passes(units[0][unit], units[1][unit], _partners(layers)))
    named = join_named(reference.events, port.events)
    parameters = _parameters_by_event_names(final.parameters, reference.run, port.run)
    held = join_parameters(reference.events, port.events, parameters)
    events = sorted((*joined.pairs, *named.pairs, *held.pairs), key=lambda pair: pair.first.order)
    reasons = {**joined.reasons, **named.reasons, **held.reasons}
    return Alignment(
        layers=layers,
        parameters=parameters,
        events=tuple(events),
        unpaired=_unpaired(reference, port, events, reasons, layers),
        lone_reference=_lone(reference.run, {pair.reference for pair in layers}),
        lone_port=_lone(port.run, {pair.port for pair in layers}),
        lone_reference_parameters=_lone_parameters(
            reference.run, {name for pair in parameters for name in pair.reference}
        ),
        lone_port_parameters=_lone_parameters(
            port.run, {name for pair in parameters for name in pair.port}
        ),
        moved=joined.moved(looks[0]),
    )


def _side(source: EventSource) -> Side:
    return Side(source.run.layers, source.run.parameters, initial_values(source))


def _pair(
    sides: tuple[Side, Side], given: UserMap, executed: Sequence[LayerPair], by_order: bool
) -> Pairing:
    return pair_sides(
        *sides,
        rename=given.rename,
        user_pairs=given.parameters,
        user_layers=given.layers,
        executed=executed,
        by_order=by_order,
    )


def _partners(layers: Iterable[LayerPair]) -> dict[str, str]:
    return {pair.reference: pair.port for pair in layers}


def _executed(
    units: tuple[Mapping[Unit, tuple[Pass, ...]], Mapping[Unit, tuple[Pass, ...]]], known: Known
) -> tuple[LayerPair, ...]:
    """Pairs of layers that only the order of execution tells, where all their calls agree on it."""
    votes: dict[str, Counter[str]] = {}
    sure: dict[tuple[str, str], float] = {}
    partners = _partners(known.pairs)
    for unit in sorted(units[0].keys() & units[1].keys()):
        for group in match_passes(units[0][unit], units[1][unit], partners).groups:
            if group.uneven:
                continue
            for pair in match_calls(group.reference[0], group.port[0], known):
                one, other = pair.reference[0], pair.port[0]
                if pair.how == "sequence" and one not in partners:
                    votes.setdefault(one, Counter())[other] += 1
                    sure[one, other] = min(pair.confidence, sure.get((one, other), 1.0))
    return tuple(
        LayerPair(one, other, "sequence", sure[one, other])
        for one, found in votes.items()
        if len(found) == 1
        for other in found
    )


class _Joined:
    """Event pairs of layers, gathered over all steps."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self.pairs: list[EventPair] = []
        self.reasons: dict[Event, str] = {}
        self._orders: list[tuple[str, int]] = []

    def add(self, matched: MatchedPasses) -> None:
        """Join the events of one step's passes."""
        for group in matched.groups:
            if group.uneven:
                self._set_aside((*group.reference, *group.port), CUT)
            elif group.cut:
                self._join_cut(group)
            else:
                self._join(group.reference[0], group.port[0])
        lone = "the other side runs the net less often in this step"
        self._set_aside((*matched.lone_reference, *matched.lone_port), lone)

    def moved(self, looks: Mapping[str, Profile]) -> tuple[str, ...]:
        """Layers with parameters that run in another order in the port, in the first pass."""
        kept = set(longest_chain([order for _, order in self._orders]))
        moved = [name for place, (name, _) in enumerate(self._orders) if place not in kept]
        return tuple(dict.fromkeys(name for name in moved if name in looks and looks[name].own))

    def _join(self, reference: Pass, port: Pass) -> None:
        mine, yours = spots(reference), spots(port)
        places = {spot: number for number, spot in enumerate(yours)}
        found = match_calls(reference, port, self._known)
        if not self._orders:
            ordered = sorted(found, key=lambda pair: mine[pair.reference].order)
            self._orders = [(pair.reference[0], places[pair.port]) for pair in ordered]
        for pair in found:
            self._join_calls(pair, mine[pair.reference], yours[pair.port])

    def _join_calls(self, pair: SpotPair, mine: Call, yours: Call) -> None:
        for role in LAYER_ROLES:
            for one, other in match_slots(mine.events.get(role, ()), yours.events.get(role, ())):
                transform = layout(one.shape, other.shape)
                self.pairs.append(EventPair((one,), (other,), transform, pair.how, pair.confidence))

    def _join_cut(self, group: PassGroup) -> None:
        """Join one pass of a side with the several that cut the same batch on the other."""
        whole_is_reference = len(group.reference) == 1
        whole = group.reference[0] if whole_is_reference else group.port[0]
        pieces = group.port if whole_is_reference else group.reference
        of_whole = spots(whole)
        per_piece: list[dict[tuple[str, int], tuple[SpotPair, Call]]] = []
        for piece in pieces:
            of_piece = spots(piece)
            if whole_is_reference:
                found = match_calls(whole, piece, self._known)
                per_piece.append({p.reference: (p, of_piece[p.port]) for p in found})
            else:
                found = match_calls(piece, whole, self._known)
                per_piece.append({p.port: (p, of_piece[p.reference]) for p in found})
        for spot, call in of_whole.items():
            parts = [found[spot] for found in per_piece if spot in found]
            if len(parts) == len(pieces):
                self._join_pieces(call, parts, whole_is_reference)
        self._set_aside((*group.reference, *group.port), CUT)

    def _join_pieces(
        self, whole: Call, parts: Sequence[tuple[SpotPair, Call]], whole_is_reference: bool
    ) -> None:
        for role in (Role.INPUT, Role.OUTPUT):
            for event in whole.events.get(role, ()):
                pieces = tuple(
                    piece
                    for _, call in parts
                    for piece in call.events.get(role, ())
                    if piece.key.slot == event.key.slot
                )
                if len(pieces) != len(parts) or not _pieces_of(event, pieces):
                    continue
                how, sure = parts[0][0].how, parts[0][0].confidence
                if whole_is_reference:
                    cuts = Transform("split", sections=tuple(piece.shape[0] for piece in pieces))
                    self.pairs.append(EventPair((event,), pieces, cuts, how, sure))
                else:
                    joined = Transform("concatenate")
                    self.pairs.append(EventPair(pieces, (event,), joined, how, sure))

    def _set_aside(self, passes: Iterable[Pass], reason: str) -> None:
        for one in passes:
            for call in one.calls:
                self.reasons.update(dict.fromkeys(call.all_events, reason))


def _pieces_of(event: Event, pieces: Sequence[Event]) -> bool:
    """Whether the pieces, joined along axis 0, have the whole's shape."""
    if not event.shape or not all(piece.shape[1:] == event.shape[1:] for piece in pieces):
        return False
    return sum(piece.shape[0] for piece in pieces if piece.shape) == event.shape[0]


def _by_event_names(
    pairs: Iterable[LayerPair], reference: RunRecord, port: RunRecord
) -> tuple[LayerPair, ...]:
    """The pairs by the names that events bear, each once."""
    names = first_names(reference), first_names(port)
    found: dict[tuple[str, str], LayerPair] = {}
    for pair in pairs:
        one = names[0].get(pair.reference, pair.reference)
        other = names[1].get(pair.port, pair.port)
        found.setdefault((one, other), LayerPair(one, other, pair.how, pair.confidence))
    return tuple(found.values())


def _parameters_by_event_names(
    pairs: Iterable[ParameterPair], reference: RunRecord, port: RunRecord
) -> tuple[ParameterPair, ...]:
    names = first_parameter_names(reference), first_parameter_names(port)
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], ParameterPair] = {}
    for pair in pairs:
        one = tuple(names[0].get(name, name) for name in pair.reference)
        other = tuple(names[1].get(name, name) for name in pair.port)
        renamed = ParameterPair(one, other, pair.transform, pair.how, pair.confidence)
        found.setdefault((one, other), renamed)
    return tuple(found.values())


def _unpaired(
    reference: EventSource,
    port: EventSource,
    pairs: Sequence[EventPair],
    reasons: Mapping[Event, str],
    layers: Sequence[LayerPair],
) -> tuple[Unpaired, ...]:
    taken = {event for pair in pairs for event in (*pair.reference, *pair.port)}
    steps = [{event.key.step for event in source.events} for source in (reference, port)]
    known = {pair.reference for pair in layers}, {pair.port for pair in layers}
    found: list[Unpaired] = []
    for number, source in enumerate((reference, port)):
        for event in source.events:
            if event in taken:
                continue
            if event.key.step not in steps[1 - number]:
                reason = "only one side has this step"
            elif event in reasons:
                reason = reasons[event]
            elif event.key.role in LAYER_ROLES and event.key.name not in known[number]:
                reason = "no layer of the other side stands for it"
            else:
                reason = "the other side has no such tensor"
            found.append(Unpaired("port" if number else "reference", event, reason))
    return tuple(found)


def _lone(run: RunRecord, paired: set[str]) -> tuple[str, ...]:
    names = first_names(run)
    return tuple(
        layer.name for layer in run.layers if not layer.alias_of and names[layer.name] not in paired
    )


def _lone_parameters(run: RunRecord, paired: set[str]) -> tuple[str, ...]:
    names = first_parameter_names(run)
    return tuple(p.name for p in run.parameters if not p.tied_to and names[p.name] not in paired)
