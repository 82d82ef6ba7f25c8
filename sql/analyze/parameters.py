"""Parameters as clients give them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from ...catalog.values.errors import SQLError
from ...catalog.values.interval import Interval

# fmt: off
_PLAIN = (
    str, int, float, bytes, Decimal, date, datetime, time, timedelta, Interval, UUID, dict,
    type(None),
)
_PLAIN_SET = frozenset(_PLAIN)
# fmt: on


def check_parameters(given: Sequence[object], wanted: int) -> Sequence[object]:
    """The parameters as values that every path takes. Raises SQLError 08P01 or 42804.

    Numbers of other libraries (NumPy's) become Python's.
    """
    if len(given) != wanted:
        raise SQLError(
            "08P01",
            f"{len(given)} parameters are given, but the statement has {wanted}",
            hint="Parameters are written $1, $2, …",
        )
    if _PLAIN_SET.issuperset(map(type, given)):
        return given
    return [_plain(value, number) for number, value in enumerate(given, start=1)]


def _plain(value: object, number: int) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        if _PLAIN_SET.issuperset(map(type, value)):
            return list(value)
        return [_plain(item, number) for item in value]
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    for convert in ("__index__", "__float__"):
        method = getattr(value, convert, None)
        if method is not None:
            return method()
    raise SQLError("42804", f"parameter ${number} is a {type(value).__name__}, which is no datum")
