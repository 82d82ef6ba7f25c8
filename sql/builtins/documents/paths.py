"""Places within documents: what stands there, and documents with something else there.

A path is the texts of `'{a,1,b}'::TEXT[]`: a member's name in an object, a place in an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

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
    return _changed(document, path, 0, (_remove_member, _remove_item))


def with_value(document: str, path: Path, new: str, missing: bool = True) -> str:
    """jsonb_set: what stands at the path is replaced, or made if its parent is there."""
    if is_scalar(document):
        raise SQLError("22023", "cannot set path in scalar")
    changes = partial(_set_member, new, missing), partial(_set_item, new, missing)
    return _changed(document, path, 0, changes)


Changes = tuple[Callable[[dict[str, str], str], None], Callable[[list[str], int], None]]
"""Two in-place changes of the container that a path's last step names: of an object's members,
and of an array's items."""


def _changed(document: str, path: Path, level: int, changes: Changes) -> str:
    """The document with a change at the path; as it is where the path leads nowhere."""
    if level == len(path) or is_scalar(document):
        return document
    step, last = path[level], level == len(path) - 1
    if step is None:
        raise SQLError("22004", f"path element at position {level + 1} is null")
    if is_object(document):
        members = members_of(document)
        if last:
            changes[0](members, step)
        elif step in members:
            members[step] = _changed(members[step], path, level + 1, changes)
        return object_of(members)
    items, place = items_of(document), _checked_place(step, level)
    if last:
        changes[1](items, place)
    elif -len(items) <= place < len(items):
        items[place] = _changed(items[place], path, level + 1, changes)
    return array_of(items)


def _checked_place(step: str, level: int) -> int:
    place = _place(step)
    if place is None:
        raise SQLError("22P02", f'path element at position {level + 1} is not an integer: "{step}"')
    return place


def _place(step: str) -> int | None:
    """The number that a step says, as C reads one: blanks before it, none behind it."""
    digits = step.lstrip(" \t\n\v\f\r")
    unsigned = digits[1:] if digits[:1] in ("+", "-") else digits
    if not (unsigned.isascii() and unsigned.isdigit()) or len(unsigned) > _PLACE_DIGITS_MAX:
        return None
    place = int(digits)
    return place if -_INT4_MAX - 1 <= place <= _INT4_MAX else None


_PLACE_DIGITS_MAX = 1000
"""Digits of a place, zeros before it among them: Python refuses to read some thousands."""


def _remove_member(members: dict[str, str], name: str) -> None:
    members.pop(name, None)


def _remove_item(items: list[str], place: int) -> None:
    if -len(items) <= place < len(items):
        del items[place]


def _set_member(new: str, missing: bool, members: dict[str, str], name: str) -> None:
    if missing or name in members:
        members[name] = new


def _set_item(new: str, missing: bool, items: list[str], place: int) -> None:
    if -len(items) <= place < len(items):
        items[place] = new
    elif missing:
        items.insert(0 if place < 0 else len(items), new)
