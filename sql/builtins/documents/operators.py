"""Operators, functions and casts of whole documents, as PostgreSQL has them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

from ....catalog.values.errors import SQLError
from ....catalog.values.json_text import read_json
from .slices import (
    array_of,
    is_array,
    is_object,
    is_scalar,
    is_text,
    items_of,
    members_of,
    object_of,
    text_of,
    type_of,
)


def concatenated(first: str, second: str) -> str:
    """`first || second`."""
    if is_object(first) and is_object(second):
        return object_of({**members_of(first), **members_of(second)})
    return array_of(_as_items(first) + _as_items(second))


def _as_items(document: str) -> list[str]:
    return items_of(document) if is_array(document) else [document]


def without(document: str, what: str | int | Sequence[str | None]) -> str:
    """`document - 'key'`, `document - 1` and `document - ARRAY['a', 'b']`."""
    if isinstance(what, int):
        return without_index(document, what)
    return without_keys(document, [what] if isinstance(what, str) else what)


def without_keys(document: str, keys: Sequence[str | None]) -> str:
    """Without these members, or without these texts among an array's items."""
    if is_scalar(document):
        raise SQLError("22023", "cannot delete from scalar")
    if is_object(document):
        kept = {name: item for name, item in members_of(document).items() if name not in keys}
        return object_of(kept)
    return array_of(
        item for item in items_of(document) if not is_text(item) or text_of(item) not in keys
    )


def without_index(document: str, index: int) -> str:
    """Without the item at a place; a negative one counts from the end."""
    if is_object(document):
        raise SQLError("22023", "cannot delete from object using integer index")
    if is_scalar(document):
        raise SQLError("22023", "cannot delete from scalar")
    items = items_of(document)
    if -len(items) <= index < len(items):
        del items[index]
    return array_of(items)


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
    """Returns the texts that `?` compares with: names of members, texts of an array, a text
    itself."""
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


def keys(document: str) -> list[str]:
    """jsonb_object_keys."""
    if not is_object(document):
        what = "an array" if is_array(document) else "a scalar"
        raise SQLError("22023", f"cannot call jsonb_object_keys on {what}")
    return list(members_of(document))


def pairs(document: str) -> list[tuple[str, str]]:
    """jsonb_each."""
    if not is_object(document):
        raise SQLError("22023", "cannot call jsonb_each on a non-object")
    return list(members_of(document).items())


def text_pairs(document: str) -> list[tuple[str, str | None]]:
    """jsonb_each_text."""
    return [(name, text_of(value)) for name, value in pairs(document)]


NUMERIC_SCALE = 9
"""Fractional digits of DECIMAL(38,9), the type of a bare NUMERIC."""


def integer_of(document: str) -> int:
    """A number cast to an integer: halves are rounded away from zero."""
    _check(document, "number", "bigint")
    whole = int(Decimal(document).to_integral_value(ROUND_HALF_UP))
    if not -(1 << 63) <= whole < 1 << 63:
        raise SQLError("22003", "bigint out of range")
    return whole


def number_of(document: str) -> str:
    """A number's digits, for a cast."""
    _check(document, "number", "numeric")
    return document


def bare_number_of(document: str) -> str:
    """A number for NUMERIC without a scale, which has no more than nine fractional digits."""
    number = number_of(document)
    if len(number.partition(".")[2]) > NUMERIC_SCALE:
        raise SQLError(
            "22003",
            f"NUMERIC keeps {NUMERIC_SCALE} fractional digits, and {number[:60]} has more: "
            "cast it to NUMERIC(38, n)",
        )
    return number


def truth_of(document: str) -> bool:
    _check(document, "boolean", "boolean")
    return document == "true"


def _check(document: str, wanted: str, target: str) -> None:
    found = type_of(document)
    if found != wanted:
        called = "numeric" if found == "number" else found
        raise SQLError("22023", f"cannot cast jsonb {called} to type {target}")
