"""Casts to enumerations: `'ok'::mood` names a type that only the catalog tells.

Expressions know no catalog. So before a statement is planned each such cast is told which version
of the type it means: the one that the statement's own tables have, or else (`name_enum_casts`) the
newest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.descriptors.enum_columns import enum_in
from ...catalog.values.column_types import ColumnType, array_of, enum_of
from ...catalog.values.type_kinds import SQL_NAMES
from ..syntax.statements import Delete, Insert, Query, Update, WithWrites
from ..syntax.trees import CAST_TYPE, find_all, position_of, trees_in
from .binder import Relations

Casting = Query | Insert | Update | Delete | WithWrites


def bind_enum_casts(statement: Casting, relations: Relations) -> None:
    """Tells the casts in the statement the types that its tables have."""
    types = _enums_of(relations)
    for cast, parts, array in _casts(statement) if types else ():
        _bind(cast, types.get(parts[-1]), array=array)


def bind_row_casts(tree: exp.Expr, table: TableDescriptor) -> None:
    """Tells the casts in an expression of one row of a table the types of the columns that it
    names: the expression goes with those columns, and so it never outlives the types."""
    named = {column.name for column in find_all(tree, exp.Column)}
    types = _enums_in(column for column in table.visible_columns if column.name in named)
    for cast, parts, array in _casts_in(tree) if types else ():
        _bind(cast, types.get(parts[-1]), array=array)


def unbound_types(statement: Casting, relations: Relations) -> dict[tuple[str, ...], int]:
    """The names of types that no table of the statement has, each with where it first stands."""
    found: dict[tuple[str, ...], int] = {}
    casts = list(_casts(statement))
    types = _enums_of(relations) if casts else {}
    for cast, parts, _ in casts:
        if parts[-1] not in types:
            found.setdefault(parts, position_of(cast.to) or position_of(cast) or 0)
    return found


def name_enum_casts(statement: Casting, types: Mapping[tuple[str, ...], ColumnType]) -> None:
    """Tells casts their types by the names that were written."""
    for cast, parts, array in _casts(statement):
        _bind(cast, types.get(parts), array=array)


def _bind(cast: exp.Cast, type: ColumnType | None, *, array: bool) -> None:
    if type is not None:
        cast.meta[CAST_TYPE] = array_of(type) if array else type


def _casts(statement: Casting) -> Iterator[tuple[exp.Cast, tuple[str, ...], bool]]:
    """Casts to users' types: the parts of the type's name, and whether it is to arrays of it."""
    for tree in trees_in(statement):
        yield from _casts_in(tree)


def _casts_in(tree: exp.Expr) -> Iterator[tuple[exp.Cast, tuple[str, ...], bool]]:
    for cast in find_all(tree, exp.Cast):
        name = _user_type(cast)
        if name is not None:
            yield cast, *name


def _user_type(cast: exp.Cast) -> tuple[tuple[str, ...], bool] | None:
    """Returns the name of a cast's user type, and whether the cast is to an array of it; None
    for SQL's own types."""
    target = cast.to
    array = target.this == exp.DType.ARRAY
    inner = target.expressions[0] if array else target
    if not isinstance(inner, exp.DataType) or inner.this != exp.DType.USERDEFINED:
        return None
    written = inner.sql("postgres")
    array = array or written.endswith("[]")
    parts = written.removesuffix("[]").split(".")
    if len(parts) == 1 and parts[0].lower() in SQL_NAMES:
        return None  # BYTES is ours, and none that sqlglot knows
    return tuple(p.strip('"') if p.startswith('"') else p.lower() for p in parts), array


def _enums_of(relations: Relations) -> dict[str, ColumnType]:
    return _enums_in(column for table in relations.values() for column in table.visible_columns)


def _enums_in(columns: Iterable[Column]) -> dict[str, ColumnType]:
    return {
        enum.name: enum_of(enum) for column in columns if (enum := enum_in(column.type)) is not None
    }
