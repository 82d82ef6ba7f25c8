"""Casts of text literals, read while planning: `'12.5'::INT8` is an error, `'on'::BOOL` is true."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType, coerce
from ....catalog.values.enum_type import EnumType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...parse import position_of
from ..scalars import Scalar, adapt, compile_scalar, type_of_cast
from .derived_types import literal_type

_READ = frozenset(
    {TypeKind.BOOL, TypeKind.INT2, TypeKind.INT4, TypeKind.INT8, TypeKind.FLOAT4, TypeKind.FLOAT8,
     TypeKind.DECIMAL, TypeKind.BYTES, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ,
     TypeKind.UUID}
)  # fmt: skip


def literal_cast(cast: exp.Cast) -> tuple[Scalar, ColumnType] | None:
    """The constant that a cast of a text literal is, and its broad type; None for other casts."""
    literal = cast.this.unnest()
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return None
    type = type_of_cast(cast)
    if type is not None and type.enum is not None and not isinstance(cast, exp.TryCast):
        _check_label(type.enum, literal)
    if type is None or type.kind not in _READ or isinstance(cast, exp.TryCast):
        return None
    if type.kind is TypeKind.DECIMAL and not cast.to.expressions:
        type = digits_of(literal.this, type)
        return adapt(compile_scalar(literal, {}), type, position=position_of(literal)), type
    try:
        return compile_scalar(exp.Cast(this=literal.copy(), to=cast.to.copy()), {}), type.broad
    except SQLError as error:
        error.position = error.position or position_of(literal)
        raise


def _check_label(enum: EnumType, literal: exp.Literal) -> None:
    try:
        enum.checked(literal.name)
    except SQLError as error:
        error.position = position_of(literal)
        raise


def type_as_written(text: str) -> ColumnType | None:
    """DECIMAL with the fractional digits that the text has."""
    try:
        type = literal_type(text.strip().lstrip("+-"))
    except ValueError:
        return None
    digits = type.decimal[1] if type.kind is TypeKind.DECIMAL else 0
    return ColumnType(TypeKind.DECIMAL, 38, digits) if digits <= _DIGITS_MAX else None


_DIGITS_MAX = 30
"""Behind the point: eight are left before it."""


def digits_of(text: str, type: ColumnType) -> ColumnType:
    """DECIMAL with the digits of the text, or `type` where that holds it. Raises SQLError 22003
    for one that has more digits than any."""
    written = type_as_written(text)
    if written is None:
        coerce(ColumnType(TypeKind.DECIMAL), text)
    return written or type
