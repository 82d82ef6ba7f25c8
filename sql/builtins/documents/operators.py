"""Operators and functions of documents, as PostgreSQL has them: over slices of their texts,
so that nothing is read that is not asked for.

    {"a": 4.50, "b": [1, 2]}      {"a": "4.50", "b": "[1, 2]"}

A slice of a normal text is a normal text, so numbers keep their digits. A path is the texts of
`'{a,1,b}'::TEXT[]`: a member's name in an object, a place in an array.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from ....catalog.values.errors import SQLError
from ....catalog.values.json_text import by_length, read_json, write_json


def concatenated(first: str, second: str) -> str:
    """`first || second`."""
    if is_object(first) and is_object(second):
        return object_of({**members_of(first), **members_of(second)})
    return array_of(_as_items(first) + _as_items(second))


def _as_items(document: str) -> list[str]:
    return items_of(document) if is_array(document) else [document]


def without(document: str, key: str) -> str:
    """`document - 'key'`: without a member, or without the texts of an array that are `key`."""
    if is_scalar(document):
        raise SQLError("22023", "cannot delete from scalar")
    if is_object(document):
        return object_of({name: item for name, item in members_of(document).items() if name != key})
    return array_of(
        item for item in items_of(document) if not is_text(item) or text_of(item) != key
    )


def contains(whole: str, part: str) -> bool:
    """`whole @> part`."""
    return _contains(read_json(whole), _read_part(part), top=True)


_read_part = lru_cache(maxsize=64)(read_json)
"""Mostly one and the same for all rows. Nobody changes what is read."""


def contained(part: str, whole: str) -> bool:
    """`part <@ whole`."""
    return contains(whole, part)


def _contains(whole: Any, part: Any, *, top: bool = False) -> bool:
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and _contains(whole[name], part[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        return all(any(_contains(item, wanted) for item in whole) for wanted in part)
    if top and isinstance(whole, list) and not isinstance(part, dict):
        return any(_equal(item, part) for item in whole)
    return _equal(whole, part)


def _equal(first: Any, second: Any) -> bool:
    """Truths are no numbers, as they are in Python."""
    if isinstance(first, bool) != isinstance(second, bool):
        return False
    return bool(first == second)


def top_keys(document: str) -> list[str]:
    """The texts that `?` compares with: names of members, texts of an array, a text itself."""
    if is_object(document):
        return list(members_of(document))
    texts = items_of(document) if is_array(document) else [document]
    return [text_of(item) or "" for item in texts if is_text(item)]


def has_key(document: str, key: str) -> bool:
    """`document ? 'key'`."""
    return key in top_keys(document)


def has_any_key(document: str, keys: Sequence[str | None]) -> bool:
    """`document ?| ARRAY['a', 'b']`."""
    return not set(keys).isdisjoint(top_keys(document))


def has_all_keys(document: str, keys: Sequence[str | None]) -> bool:
    """`document ?& ARRAY['a', 'b']`: a NULL among them is no key."""
    return (set(keys) - {None}).issubset(top_keys(document))


def array_length(document: str) -> int:
    if not is_array(document):
        what = "non-array" if is_object(document) else "scalar"
        raise SQLError("22023", f"cannot get array length of a {what}")
    return len(items_of(document))


def elements(document: str) -> list[str]:
    """jsonb_array_elements."""
    if not is_array(document):
        what = "an object" if is_object(document) else "a scalar"
        raise SQLError("22023", f"cannot extract elements from {what}")
    return items_of(document)


def element_texts(document: str) -> list[str | None]:
    """jsonb_array_elements_text."""
    return [text_of(item) for item in elements(document)]


# Places within documents: what stands there, and documents with something else there.


Path = Sequence[str | None]

_INT4_MAX = (1 << 31) - 1


def element(document: str, step: str | int) -> str | None:
    """`document -> step`. A scalar is an array of itself, as PostgreSQL keeps it."""
    if isinstance(step, str):
        return member_of(document, step) if is_object(document) else None
    if is_array(document):
        return item_of(document, step)
    return document if is_scalar(document) and step in (0, -1) else None


def element_text(document: str, step: str | int) -> str | None:
    """`document ->> step`."""
    found = element(document, step)
    return None if found is None else text_of(found)


def at_path(document: str, path: Path) -> str | None:
    """`document #> path`."""
    found: str | None = document
    for step in path:
        if found is None or step is None:
            return None
        if is_object(found):
            found = member_of(found, step)
        else:
            place = _place(step)
            found = item_of(found, place) if is_array(found) and place is not None else None
    return found


def text_at_path(document: str, path: Path) -> str | None:
    """`document #>> path`."""
    found = at_path(document, path)
    return None if found is None else text_of(found)


def without_path(document: str, path: Path) -> str:
    """`document #- path`."""
    if is_scalar(document):
        raise SQLError("22023", "cannot delete path in scalar")
    return _changed(document, path, 0, None)


def with_value(document: str, path: Path, new: str, missing: bool = True) -> str:
    """jsonb_set: what stands at the path is replaced, or made if its parent is there."""
    if is_scalar(document):
        raise SQLError("22023", "cannot set path in scalar")
    return _changed(document, path, 0, new, missing=missing)


def _changed(
    document: str, path: Path, level: int, new: str | None, *, missing: bool = False
) -> str:
    """The document with `new`, or nothing, at the path; what is `missing` there is made. It is as
    it was where the path leads nowhere."""
    if level == len(path) or is_scalar(document):
        return document
    step, last = path[level], level == len(path) - 1
    if step is None:
        raise SQLError("22004", f"path element at position {level + 1} is null")
    if is_object(document):
        members = members_of(document)
        if not last and step in members:
            members[step] = _changed(members[step], path, level + 1, new, missing=missing)
        elif last and new is None:
            members.pop(step, None)
        elif last and new is not None and (missing or step in members):
            members[step] = new
        return object_of(members)
    items, place = items_of(document), _checked_place(step, level)
    there = -len(items) <= place < len(items)
    if there and not last:
        items[place] = _changed(items[place], path, level + 1, new, missing=missing)
    elif there and new is None:
        del items[place]
    elif there and new is not None:
        items[place] = new
    elif last and new is not None and missing:
        items.insert(0 if place < 0 else len(items), new)
    return array_of(items)


def _checked_place(step: str, level: int) -> int:
    place = _place(step)
    if place is None:
        raise SQLError("22P02", f'path element at position {level + 1} is not an integer: "{step}"')
    return place


def _place(step: str) -> int | None:
    """The number that a step says, as C reads one: blanks before it, none behind it."""
    if len(step) > _PLACE_LENGTH_MAX or not _is_place(step):
        return None
    place = int(step)
    return place if -_INT4_MAX - 1 <= place <= _INT4_MAX else None


_is_place = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]+").fullmatch
_PLACE_LENGTH_MAX = 1000
"""Letters of a place, zeros before it among them: Python refuses to read some thousands."""


# The parts of a document, as slices of its text.

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
    """Returns the text of a member of an object; None where there is none."""
    slice = _members(document).get(name)
    return None if slice is None else str(slice, "utf-8")


def items_of(document: str) -> list[str]:
    """The items of an array."""
    return [str(slice, "utf-8") for slice in _items(document)]


def item_of(document: str, place: int) -> str | None:
    """Returns the text of an item of an array; a negative place counts from the end."""
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
