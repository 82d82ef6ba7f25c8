"""Documents are ordered as PostgreSQL's btree says, whatever digits they show."""

from __future__ import annotations

from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from hypothesis import given, settings

from tailrace.catalog.values.json_text import read_json
from tailrace.sql.builtins.documents.order import sort_key
from tests.harness.documents import DOCUMENTS


def _rank(value: Any) -> int:
    kinds: list[Any] = [type(None), str, (int, Decimal), bool, list, dict]
    if isinstance(value, bool):
        return 3
    return next(place for place, kind in enumerate(kinds) if isinstance(value, kind))


def _sign(first: Any, second: Any) -> int:
    return int(first > second) - int(first < second)


def compared(first: Any, second: Any) -> int:
    """The order as the manual tells it, value by value."""
    if _rank(first) != _rank(second):
        return _sign(_rank(first), _rank(second))
    if isinstance(first, str):
        return _sign(first.encode(), second.encode())
    if isinstance(first, list):
        order = _sign(len(first), len(second))
        pairs = zip(first, second, strict=False)
        return order or next((found for a, b in pairs if (found := compared(a, b))), 0)
    if isinstance(first, dict):
        if len(first) != len(second):
            return _sign(len(first), len(second))
        for (name, item), (other, its) in zip(first.items(), second.items(), strict=True):
            order = compared(name, other) or compared(item, its)
            if order:
                return order
        return 0
    return 0 if first is None else _sign(first, second)


def documents_compared(first: str, second: str) -> int:
    """A scalar is the array of itself, before other arrays of one item."""
    values = read_json(first), read_json(second)
    scalars = [not isinstance(value, list | dict) for value in values]
    wrapped = [[v] if scalar else v for v, scalar in zip(values, scalars, strict=True)]
    if scalars[0] != scalars[1] and _rank(wrapped[0]) == _rank(wrapped[1]) == 4:
        return _sign(len(wrapped[0]), len(wrapped[1])) or (-1 if scalars[0] else 1)
    return compared(*wrapped)


@settings(max_examples=300)
@given(DOCUMENTS, DOCUMENTS)
def test_keys_are_in_the_order_of_documents(first: str, second: str) -> None:
    assert _sign(sort_key(first), sort_key(second)) == documents_compared(first, second)


def test_order_of_kinds() -> None:
    """What PostgreSQL 15 gives for `ORDER BY` over these."""
    documents = ["[]", "null", '"a"', '"b"', "-1.5", "0", "1.50", "10", "false", "true",
                 "[null]", "[1]", "[0, 0]", "{}", '{"a": 1}', '{"a": 2}', '{"b": 0}',
                 '{"a": 0, "b": 0}']  # fmt: skip
    backwards = documents[::-1]
    assert sorted(backwards, key=sort_key) == documents
    assert sorted(backwards, key=cmp_to_key(documents_compared)) == documents
