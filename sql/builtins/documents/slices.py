"""The parts of a document, as slices of its text: nothing is read that is not asked for.

    {"a": 4.50, "b": [1, 2]}      {"a": "4.50", "b": "[1, 2]"}

A slice of a normal text is a normal text, so numbers keep their digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from ....catalog.values.json_text import by_length, write_json

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode

NULL = "null"


def is_object(document: str) -> bool:
    return document[0] == "{"


def is_array(document: str) -> bool:
    return document[0] == "["


def is_text(document: str) -> bool:
    return document[0] == '"'


def is_scalar(document: str) -> bool:
    return document[0] not in "{["


def members_of(document: str) -> dict[str, str]:
    """The members of an object."""
    return {name: str(slice, "utf-8") for name, slice in _members(document).items()}


def member_of(document: str, name: str) -> str | None:
    """One member of an object."""
    slice = _members(document).get(name)
    return None if slice is None else str(slice, "utf-8")


def items_of(document: str) -> list[str]:
    """The items of an array."""
    return [str(slice, "utf-8") for slice in _items(document)]


def item_of(document: str, place: int) -> str | None:
    """One item of an array; a negative place counts from the end."""
    slices = _items(document)
    return str(slices[place], "utf-8") if -len(slices) <= place < len(slices) else None


def text_of(document: str) -> str | None:
    """Returns the text that `->>` shows of a document: without quotes; None for null."""
    if is_text(document):
        return _text(document)
    return None if document == NULL else document


def object_of(members: Mapping[str, str]) -> str:
    """The object that has these members."""
    named = sorted([(*_name(name), value) for name, value in members.items()])
    return f"{{{', '.join([f'{written}: {value}' for _, written, value in named])}}}"


@lru_cache(maxsize=4096)  # the same names come again and again
def _name(name: str) -> tuple[tuple[int, bytes], str]:
    """Returns the sort key of a member, and its name as it is written."""
    return by_length(name), write_json(name)


def array_of(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def type_of(document: str) -> str:
    """Returns the name of jsonb_typeof for a document."""
    return _TYPES.get(document[0], "number")


_TYPES = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": NULL}
