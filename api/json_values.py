"""SQL values in JSON replies.

Integers and FLOAT8 are numbers (NaN and the infinities are strings), DECIMAL is a string so that no
digit is lost, dates and timestamps are ISO 8601, BYTES is `\\x` and hex, UUID its text.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from uuid import UUID

from ..catalog.column_types import ColumnType
from ..catalog.type_kinds import INTEGERS, TEXTS, TypeKind

JsonValue = None | bool | int | float | str

WRITTEN_AS_THEY_ARE = frozenset(
    {
        TypeKind.BOOL,
        *INTEGERS,
        *TEXTS,
        TypeKind.DATE,
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMPTZ,
        TypeKind.UUID,
    }
)
"""What msgspec writes just as `json_value` has it."""


def passes(type: ColumnType) -> bool:
    """Whether a column's datums may go to msgspec without `json_value`."""
    return type.kind in WRITTEN_AS_THEY_ARE


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
        case dt.date():
            return value.isoformat()
        case UUID():
            return str(value)
        case list() | tuple():
            return [json_value(item) for item in value]
        case dict():
            return {str(name): json_value(item) for name, item in value.items()}
    return str(value)
