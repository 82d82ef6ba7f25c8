"""The text of one-dimensional arrays, after PostgreSQL's array_in and array_out.

{1,2,NULL}      {plain,"with, comma","say \\"hi\\""}      {}
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import SQLError
from .literals import invalid_text

_SPECIAL = frozenset('{},"\\ \t\n\r\v\f')
_BLANKS = " \t\n\r\v\f"


def write_array(elements: Sequence[str | None]) -> str:
    return "{" + ",".join(map(_written, elements)) + "}"


def _written(element: str | None) -> str:
    if element is None:
        return "NULL"
    if element and element.upper() != "NULL" and _SPECIAL.isdisjoint(element):
        return element
    escaped = element.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def read_array(text: str) -> list[str | None]:
    """The elements as text. Raises SQLError 22P02, and 0A000 for what arrays here do not have:
    several dimensions, and a first place that is not 1 (`[0:1]={1,2}`)."""
    stripped = text.strip(_BLANKS)
    if stripped.startswith("[") and "={" in stripped:
        raise SQLError("0A000", "arrays that begin elsewhere than at 1 are not supported")
    if len(stripped) < 2 or stripped[0] != "{" or stripped[-1] != "}":
        raise invalid_text("array", text)
    body = stripped[1:-1]
    if not body.strip(_BLANKS):
        return []
    return [_read(element, text) for element in _split(body, text)]


def _split(body: str, text: str) -> list[str]:
    """The elements as written, between the commas that stand outside quotes."""
    parts, start, quoted, escaped = [], 0, False, False
    for place, character in enumerate(body):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character in "{}" and not quoted:
            if character == "{" and not body[start:place].strip(_BLANKS):
                raise SQLError("0A000", "arrays of several dimensions are not supported")
            raise invalid_text("array", text)
        elif character == "," and not quoted:
            parts.append(body[start:place])
            start = place + 1
    if quoted or escaped:
        raise invalid_text("array", text)
    return [*parts, body[start:]]


def _read(written: str, text: str) -> str | None:
    element = written.strip(_BLANKS)
    if not element:
        raise invalid_text("array", text)
    if element.upper() == "NULL":
        return None
    if element.startswith('"'):
        if len(element) < 2 or not element.endswith('"'):
            raise invalid_text("array", text)
        element = element[1:-1]
    characters = iter(element)
    return "".join(next(characters, "") if found == "\\" else found for found in characters)
