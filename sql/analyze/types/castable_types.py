"""Which types are cast to which: what PostgreSQL has no cast for is refused."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...builtins.signatures import NUMBERS
from ...builtins.templates import cast_in_place
from ...builtins.type_names import type_name
from ...parse import position_of
from ..scalars import broad_type_of_cast, type_of_cast
from .types import STRING, Types

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
    TypeKind.TIME: frozenset({TypeKind.TIME, TypeKind.INTERVAL}),
    TypeKind.TIMESTAMP: _MOMENTS,
    TypeKind.TIMESTAMPTZ: _MOMENTS,
    TypeKind.INTERVAL: frozenset({TypeKind.INTERVAL, TypeKind.TIME}),
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
        raise SQLError(
            "42846",
            f"cannot cast type {type_name(source)} to {type_name(target)}",
            position=position_of(node),
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
