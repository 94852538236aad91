"""A line of code as a call of plain values: read from its syntax tree, never run."""

from __future__ import annotations

import ast

from paritydbg.model.record import Attribute
from paritydbg.model.trial import Call

# How optimizers are given what they move.
PARAMETERS = "net.trainable_params()"


def call_of(code: str, package: str = "mindspore") -> Call | None:
    """``nn.LayerNorm((64,), epsilon=1e-05)`` as a call; None for anything but literals in one call.

    Args:
        package: what the names stand under: ``nn.LayerNorm`` is ``mindspore.nn.LayerNorm``.
    """
    try:
        node = ast.parse(code.strip(), mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Call):
        return None
    name = _dotted(node.func)
    if not name:
        return None
    api = name if name.startswith(f"{package}.") else f"{package}.{name}"
    given = list(node.args)
    of_parameters = bool(given) and ast.unparse(given[0]) == PARAMETERS
    try:
        arguments = tuple(_literal(one) for one in given[of_parameters:])
        keywords = tuple((one.arg or "", _literal(one.value)) for one in node.keywords)
    except ValueError:
        return None
    # **options have no name.
    return (
        None
        if any(not key for key, _ in keywords)
        else Call(api, arguments, keywords, of_parameters)
    )


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def _literal(node: ast.expr) -> Attribute:
    """A literal's value.

    Raises:
        ValueError: it is none.
    """
    value = ast.literal_eval(node)
    return _plain(value)


def _plain(value: object) -> Attribute:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_plain(one) for one in value)
    raise ValueError(f"{value!r} is no plain value")
