"""JSONB: documents in one normal form, which is the text that PostgreSQL's jsonb has.

    {"b":1,  "aa":[1.50, true], "b": 2}      {"b": 2, "aa": [1.50, true]}

A member that comes twice keeps its last value; members stand in the order of their names' lengths,
then of their bytes; numbers keep all their digits, without an exponent. So two documents with
equal values have equal texts, but for numbers that are equal and written otherwise (`1` and `1.0`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from .errors import SQLError

DEPTH_MAX = 500
"""Levels of nesting: Python's own stack is what bounds it."""

DIGITS_MAX = 1000
"""Digits of a number when it is written out: `1e1000000` is nine bytes, and would be a million
digits."""


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise SQLError("22003", f"value overflows numeric format: {text[:40]}") from None
    if number.is_finite() and abs(number.adjusted()) > DIGITS_MAX:
        raise SQLError("22003", f"value overflows numeric format: {text[:40]}")
    return number


def _refuse_constant(word: str) -> object:
    raise ValueError(word)


def _refuse_nul(value: object) -> None:
    if isinstance(value, str) and "\x00" in value:
        raise SQLError("22P05", "unsupported Unicode escape sequence",
                       detail="\\u0000 cannot be converted to text.")  # fmt: skip


_decoder = json.JSONDecoder(
    parse_float=_number, parse_int=int, parse_constant=_refuse_constant, strict=True
)


def read_json(text: str) -> Any:
    """A JSON text as Python values, with numbers that have a fraction as Decimal.

    Raises SQLError: 22P02 for text that is no JSON, 22P05 for `\\u0000`, 54001 for what is nested
    too deeply.
    """
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise SQLError("54001", "a JSON document is nested too deeply") from None
    except ValueError as error:
        raise SQLError("22P02", "invalid input syntax for type json", detail=f"{error}.") from None


def normal_json(text: str) -> str:
    """The normal form of a JSON text. Raises what `read_json` raises."""
    return write_json(read_json(text))


def write_json(value: object) -> str:
    """The normal form of a value that is made of what JSON has, or of datums.

    Raises SQLError: 42804 for a value that has no JSON, 22P02 for NaN and infinities, 22P05 for
    NUL, 54001 for what is nested too deeply.
    """
    parts: list[str] = []
    try:
        _write(value, parts, 0)
    except RecursionError:
        raise SQLError("54001", "a JSON document is nested too deeply") from None
    return "".join(parts)


def _write(value: object, parts: list[str], depth: int) -> None:
    if depth > DEPTH_MAX:
        raise RecursionError
    match value:
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case str():
            parts.append(_quoted(value))
        case int():
            parts.append(str(int(value)))
        case float() | Decimal():
            parts.append(_number_text(value))
        case Mapping():
            _write_object(value, parts, depth)
        case list() | tuple():
            _write_array(value, parts, depth)
        case _:
            raise SQLError("42804", f"a value of type {type(value).__name__} has no JSON")


def _write_array(items: Sequence[object], parts: list[str], depth: int) -> None:
    parts.append("[")
    for place, item in enumerate(items):
        if place:
            parts.append(", ")
        _write(item, parts, depth + 1)
    parts.append("]")


def _write_object(members: Mapping[Any, object], parts: list[str], depth: int) -> None:
    named = {str(name): value for name, value in members.items()}
    parts.append("{")
    for place, name in enumerate(sorted(named, key=by_length)):
        if place:
            parts.append(", ")
        parts.append(_quoted(name))
        parts.append(": ")
        _write(named[name], parts, depth + 1)
    parts.append("}")


def by_length(name: str) -> tuple[int, bytes]:
    written = name.encode()
    return len(written), written


def _quoted(text: str) -> str:
    _refuse_nul(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SQLError(
            "22P02", "invalid input syntax for type json",
            detail="Unicode surrogates stand alone.",
        ) from None  # fmt: skip
    return json.dumps(text, ensure_ascii=False)


def _number_text(number: float | Decimal) -> str:
    exact = Decimal(repr(float(number))) if isinstance(number, float) else number
    if not exact.is_finite():
        raise SQLError("22P02", f"{number} is no number of JSON")
    written = format(exact, "f")
    return written.removeprefix("-") if not exact and written[0] == "-" else written
