"""What a capture takes and leaves: steps, layers and roles. How it is carried out is in `recording`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from paritydbg.errors import UsageError
from paritydbg.model.event import Role

_RANGE = re.compile(r"^(\d+)?(-)?(\d+)?$")

# Roles that belong to the step as a whole: a choice of layers does not touch them.
STEP_ROLES = frozenset({Role.LOSS, Role.BATCH, Role.STATE})


@dataclass(frozen=True)
class StepChoice:
    """Steps to capture, numbered from 1.

    Attributes:
        first, last: both included; ``last`` None means to the end.
    """

    first: int = 1
    last: int | None = None

    @staticmethod
    def parse(text: str) -> StepChoice:
        """The choice that ``3``, ``1-3``, ``2-`` or ``-3`` stands for.

        Raises:
            UsageError: anything else, step 0, or a range that runs backwards.
        """
        match = _RANGE.match(text.strip())
        if match is None or not (match.group(1) or match.group(3)):
            raise UsageError(f"steps {text!r} are not a range; write 3, 1-3 or 2-")
        low, dash, high = match.groups()
        first = int(low) if low else 1
        last = int(high) if high else (None if dash else first)
        if first < 1 or (last is not None and last < first):
            raise UsageError(f"steps {text!r} are not a range from 1 upwards; write 3, 1-3 or 2-")
        return StepChoice(first, last)

    def __contains__(self, step: int) -> bool:
        return step >= self.first and (self.last is None or step <= self.last)

    def over(self, step: int) -> bool:
        """Whether nothing from this step on is wanted."""
        return self.last is not None and step > self.last

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first}-"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class CapturePlan:
    """What a capture takes.

    Attributes:
        steps: which steps.
        layers: shell-style patterns of layer names (``encoder.*``); empty takes every layer. The net
            itself (``""``) is always taken.
        roles: which roles; empty takes all.
    """

    steps: StepChoice = StepChoice()
    layers: tuple[str, ...] = ()
    roles: frozenset[Role] = frozenset()

    def takes(self, role: Role, layer: str) -> bool:
        """Whether tensors of this role are taken at this layer (for parameters: at their owner)."""
        if self.roles and role not in self.roles:
            return False
        if not self.layers or role in STEP_ROLES or layer == "":
            return True
        return any(fnmatchcase(layer, pattern) for pattern in self.layers)


def parse_roles(names: tuple[str, ...]) -> frozenset[Role]:
    """The roles of that name.

    Raises:
        UsageError: an unknown name; the text lists the known ones.
    """
    known = {role.value: role for role in Role}
    for name in names:
        if name not in known:
            raise UsageError(f"role {name!r} is unknown; choose from {', '.join(known)}")
    return frozenset(known[name] for name in names)
