"""What a dump holds, gathered for a person: the value, and its rendering on a terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from paritydbg.model.event import Event
from paritydbg.model.record import LayerRecord, RunRecord
from paritydbg.model.source import EventSource

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Contents:
    """A dump in summary.

    Attributes:
        path: of the dump.
        run: its records.
        layers: the chosen layers.
        steps: captured steps.
        roles: role -> number of events, in order of first appearance.
        nbytes: of what is stored of all chosen events, what is repeated counted each time.
        events: the chosen events, empty unless asked for.
        sketches: how many of the chosen events are stored as sketches.
    """

    path: str
    run: RunRecord
    layers: tuple[LayerRecord, ...]
    steps: tuple[int, ...]
    roles: tuple[tuple[str, int], ...]
    nbytes: int
    events: tuple[Event, ...] = ()
    sketches: int = 0

    def values(self) -> dict[str, Any]:
        """The same as JSON values."""
        from dataclasses import asdict

        return {
            "schema": "paritydbg.contents/1",
            "path": self.path,
            **{name: value for name, value in asdict(self.run).items() if name != "layers"},
            "layers": [asdict(layer) for layer in self.layers],
            "steps": list(self.steps),
            "roles": dict(self.roles),
            "nbytes": self.nbytes,
            "sketches": self.sketches,
            "events": [
                {
                    "event": str(e.key),
                    "shape": list(e.shape),
                    "dtype": e.dtype,
                    "order": e.order,
                    "payload": e.payload,
                }
                for e in self.events
            ],
        }


def contents_of(source: EventSource, layers: tuple[str, ...], list_events: bool) -> Contents:
    """The contents of a dump, narrowed to names that fit one of the patterns (all if none given)."""
    chosen = [
        event
        for event in source.events
        if not layers or any(fnmatchcase(event.key.name, glob) for glob in layers)
    ]
    return Contents(
        path=source.path,
        run=source.run,
        layers=tuple(
            layer
            for layer in source.run.layers
            if not layers or any(fnmatchcase(layer.name, glob) for glob in layers)
        ),
        steps=tuple(sorted({event.key.step for event in chosen})),
        roles=tuple(Counter(event.key.role.value for event in chosen).items()),
        nbytes=sum(event.nbytes for event in chosen),
        events=tuple(chosen) if list_events else (),
        sketches=sum(not event.has_values for event in chosen),
    )


def print_contents(contents: Contents, console: Console) -> None:
    """Print the contents: environment, optimizers, layers, events, what was not captured."""
    from rich.table import Table
    from rich.text import Text

    run = contents.run
    made = run.environment
    state = "complete" if run.complete else f"incomplete {run.ended}".strip()
    _say(console, f"{contents.path}: {made.framework} {made.version} on {made.device}, {state}")
    if run.command:
        _say(console, f"  command   {run.command}")
    settings = ", ".join(f"{name}={value}" for name, value in made.settings)
    _say(console, f"  settings  {settings or 'none recorded'}")
    _say(console, f"  steps     {', '.join(map(str, contents.steps)) or 'none'}")
    counts = ", ".join(f"{count} {role}" for role, count in contents.roles)
    _say(console, f"  events    {counts or 'none'} ({contents.nbytes / 2**20:,.1f} MiB)")
    if contents.sketches:
        _say(console, f"  sketches  {contents.sketches} of them: statistics and 2 KB, no values")
    for optimizer in run.optimizers:
        told = "; ".join(", ".join(f"{n}={v}" for n, v in group) for group in optimizer.groups)
        _say(console, f"  optimizer {optimizer.api} {told}")
    for taken in run.taken:
        _say(console, f"  {taken.what:<9} {taken.source}")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("layer", "type", "mode", "attributes"):
        table.add_column(name, overflow="fold")
    for layer in contents.layers:
        attributes = ", ".join(f"{name}={value}" for name, value in layer.attributes)
        table.add_row(
            Text(layer.name or "(net)"),
            Text(layer.type),
            Text("train" if layer.training else "eval"),
            Text(attributes + (f" NOT HOOKED: {layer.unhooked}" if layer.unhooked else "")),
        )
    console.print(table)
    for event in contents.events:
        _say(console, f"  {event.order:>6} {event.key} {event.shape} {event.dtype}" + _kept(event))
    for skipped in run.skipped:
        _say(console, f"  not captured: {skipped.name or '(net)'} {skipped.role}: {skipped.reason}")
    for note in run.notes:
        _say(console, f"  note: {note}")


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False)


def _kept(event: Event) -> str:
    return "" if event.has_values else " (sketch)"
