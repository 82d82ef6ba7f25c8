"""SQL values in JSON replies.

Integers and FLOAT8 are numbers (NaN and the infinities are strings), DECIMAL is a string so that no
digit is lost, dates, times and timestamps are ISO 8601, BYTES is `\\x` and hex, UUID its text,
INTERVAL PostgreSQL's. JSONB is the document itself, an array an array.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from ..catalog.values.column_types import ColumnType
from ..catalog.values.type_kinds import INTEGERS, TEXTS, TypeKind

JsonValue = None | bool | int | float | str | list[Any] | dict[str, Any]

WRITTEN_AS_THEY_ARE = frozenset(
    {
        TypeKind.BOOL,
        *INTEGERS,
        *TEXTS,
        TypeKind.DATE,
        TypeKind.TIME,
        TypeKind.ENUM,
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMPTZ,
        TypeKind.UUID,
    }
)
"""What msgspec writes just as `json_value` has it."""


def passes(type: ColumnType) -> bool:
    """Whether a column's datums may go to msgspec without `json_value`."""
    return type.kind in WRITTEN_AS_THEY_ARE


def json_datum(type: ColumnType, value: object) -> object:
    """One value of a column as JSON has it."""
    if value is None:
        return None
    if type.kind is TypeKind.JSONB:
        assert isinstance(value, str), value
        return msgspec.Raw(value.encode())
    if type.element is not None:
        assert isinstance(value, list), value
        return [json_datum(type.element, item) for item in value]
    return json_value(value)


def json_value(value: object) -> object:
    """One value as JSON has it. Mirrors also have lists and structs; what else there is is text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return "\\x" + value.hex()
        case dt.datetime():
            text = value.isoformat()
            return text.removesuffix("+00:00") + "Z" if value.tzinfo is not None else text
        case dt.date() | dt.time():
            return value.isoformat()
        case UUID():
            return str(value)
        case list() | tuple():
            return [json_value(item) for item in value]
        case dict():
            return {str(name): json_value(item) for name, item in value.items()}
    return str(value)
