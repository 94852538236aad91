"""HTML that cannot be broken by what it shows: text is escaped where elements are built."""

from __future__ import annotations

import re
from html import escape


class Markup(str):
    """Text that is HTML already; anything else is escaped when it becomes a child."""

    __slots__ = ()


# Characters that a browser acts on or hides: controls, direction overrides, zero-width marks.
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)

_VOID = frozenset({"meta", "br", "rect", "line", "path", "circle", "polyline"})


def text(value: object) -> Markup:
    """Any value as text of a page; what would be invisible is written as its code."""
    if isinstance(value, Markup):
        return value
    shown = _INVISIBLE.sub(lambda found: f"\\u{ord(found.group()):04x}", str(value))
    # A lone surrogate cannot be written as UTF-8.
    return Markup(escape(shown.encode("utf-8", "backslashreplace").decode("utf-8")))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element; ``class_`` stands for ``class``, ``aria_label`` for ``aria-label``, None leaves out.

    An attribute that is True is written by its name alone.
    """
    told = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not children:
        return Markup(f"<{name}{told}>" if name in ("meta", "br") else f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{''.join(text(child) for child in children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'
