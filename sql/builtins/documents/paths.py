"""Places within documents: what stands there, and documents with something else there.

A path is the texts of `'{a,1,b}'::TEXT[]`: a member's name in an object, a place in an array.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....catalog.values.errors import SQLError
from .slices import (
    array_of,
    is_array,
    is_object,
    is_scalar,
    item_of,
    items_of,
    member_of,
    members_of,
    object_of,
    text_of,
)

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
