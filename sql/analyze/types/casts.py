"""Casts of text literals, read while planning: `'12.5'::INT8` is an error, `'on'::BOOL` is true."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType, coerce
from ....catalog.values.type_kinds import TypeKind
from ...builtins.signatures import NUMBERS, type_name
from ...builtins.templates import cast_in_place
from ...syntax.refusals import at, error_at
from ...syntax.trees import position_of
from ..scalars import Scalar, adapt, broad_type_of_cast, compile_scalar, type_of_cast
from .derived_types import literal_type
from .types import STRING, Types

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
        with at(position_of(literal)):
            type.enum.checked(literal.name)
    if type is None or type.kind not in _READ or isinstance(cast, exp.TryCast):
        return None
    if type.kind is TypeKind.DECIMAL and not cast.to.expressions:
        type = digits_of(literal.this, type)
        return adapt(compile_scalar(literal, {}), type, position=position_of(literal)), type
    with at(position_of(literal)):
        return compile_scalar(exp.Cast(this=literal.copy(), to=cast.to.copy()), {}), type.broad


_DIGITS_MAX = 30
"""Behind the point: eight are left before it."""


def digits_of(text: str, type: ColumnType) -> ColumnType:
    """DECIMAL with the digits of the text, or `type` where that holds it. Raises SQLError 22003
    for one that has more digits than any."""
    try:
        written = literal_type(text.strip().lstrip("+-"))
    except ValueError:
        written = None
    digits = written.decimal[1] if written is not None and written.kind is TypeKind.DECIMAL else 0
    if written is not None and digits <= _DIGITS_MAX:
        return ColumnType(TypeKind.DECIMAL, 38, digits)
    coerce(ColumnType(TypeKind.DECIMAL), text)
    return type


_NUMBERS = frozenset(NUMBERS)


_MOMENTS = frozenset({TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ})


CASTS: dict[TypeKind, frozenset[TypeKind]] = {
    TypeKind.INT8: _NUMBERS | {TypeKind.BOOL},
    TypeKind.DECIMAL: _NUMBERS,
    TypeKind.FLOAT4: _NUMBERS,
    TypeKind.FLOAT8: _NUMBERS,
    TypeKind.BOOL: frozenset({TypeKind.BOOL, TypeKind.INT8}),
    TypeKind.BYTES: frozenset({TypeKind.BYTES}),
    TypeKind.DATE: _MOMENTS - {TypeKind.TIME},
    TypeKind.TIME: frozenset({TypeKind.TIME}),
    TypeKind.TIMESTAMP: _MOMENTS,
    TypeKind.TIMESTAMPTZ: _MOMENTS,
    TypeKind.INTERVAL: frozenset({TypeKind.INTERVAL}),
    TypeKind.UUID: frozenset({TypeKind.UUID}),
    TypeKind.JSONB: _NUMBERS | {TypeKind.JSONB, TypeKind.BOOL},
}
"""The kinds that each kind is cast to; every kind is also cast to and from text."""


def resolve_cast(node: exp.Cast, types: Types) -> None:
    """Raises SQLError 42846 for a cast that there is not. What is cut to a width is
    a text first."""
    source, target = types.of(node.this), broad_type_of_cast(node)
    if source is None or target is None or isinstance(node, exp.TryCast):
        return
    if not _castable(source, target):
        raise error_at(
            node, "42846", f"cannot cast type {type_name(source)} to {type_name(target)}"
        )
    narrow = type_of_cast(node)
    if narrow is not None and narrow.width is not None and source != STRING:
        cast_in_place(node.this, STRING)


def _castable(source: ColumnType, target: ColumnType) -> bool:
    if TypeKind.STRING in (source.kind, target.kind):
        return True
    if source.element is not None or target.element is not None:
        both = source.element is not None and target.element is not None
        return both and _castable(source.element or source, target.element or target)
    if source.enum is not None or target.enum is not None:
        return source == target
    return target.kind in CASTS[source.kind]
