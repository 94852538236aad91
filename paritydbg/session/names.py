"""Names that a launched script's side gives: prefixes of further nets, entries of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection


def free_prefix(taken: Collection[str], kind: str) -> str:
    """The first part of a net's layer names: none for the first net, its class for further ones."""
    if not taken:
        return ""
    alike = sum(prefix.rstrip("0123456789") == kind for prefix in taken)
    return f"{kind}{alike + 1}" if alike else kind


def batch_name(prefix: str, call: int) -> Callable[[str], str]:
    """How a net's arguments are called as entries of the batch: ``0``, of its second call ``0#1``."""

    def name(slot: str) -> str:
        return f"{f'{prefix}.' if prefix else ''}{slot}{f'#{call}' if call else ''}"

    return name
