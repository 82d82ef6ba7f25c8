"""Casts to enumerations: `'ok'::mood` names a type that only a table's columns tell.

Expressions know no catalog. So before a statement is planned each such cast is told which version
of the type it means: the one that the statement's own tables have.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from ..catalog.column_types import ColumnType, array_of, enum_of
from ..catalog.enum_columns import enum_in
from .binder import Relations
from .parser.statements import Delete, Insert, Query, Update, WithWrites
from .parser.tree_names import CAST_TYPE

Casting = Query | Insert | Update | Delete | WithWrites


def bind_enum_casts(statement: Casting, relations: Relations) -> None:
    """Tells the casts in the statement their types."""
    types: dict[str, ColumnType] | None = None
    for tree in _trees(statement):
        for cast in () if tree is None else tree.find_all(exp.Cast):
            name = _user_type(cast)
            if name is None:
                continue
            if types is None:
                types = _enums_of(relations)
            bare = types.get(name.removesuffix("[]"))
            if bare is not None:
                cast.meta[CAST_TYPE] = bare if not name.endswith("[]") else array_of(bare)


def _trees(statement: Casting) -> Iterator[exp.Expr | None]:
    match statement:
        case Query(tree=tree):
            yield tree
        case Insert(source=source, returning=returning, conflict=conflict):
            yield from (source, *returning)
            if conflict is not None:
                yield from (value for _, value in conflict.assignments)
                yield conflict.where
        case Update(assignments=assignments):
            yield from (value for _, value in assignments)
            yield from (statement.where, *statement.returning, *statement.sources, *statement.ctes)
        case Delete():
            yield from (statement.where, *statement.returning, *statement.sources, *statement.ctes)
        case WithWrites(steps=steps, main=main):
            for step in steps:
                yield from _trees(step.statement)
            yield from _trees(main)


def _user_type(cast: exp.Cast) -> str | None:
    """The name of a type that is none of SQL's, without its schema."""
    target = cast.to
    inner = target.expressions[0] if target.this == exp.DType.ARRAY else target
    if not isinstance(inner, exp.DataType) or inner.this != exp.DType.USERDEFINED:
        return None
    written = target.sql("postgres").rpartition(".")[2]
    quoted = written.startswith('"')
    return written.replace('"', "") if quoted else written.lower()


def _enums_of(relations: Relations) -> dict[str, ColumnType]:
    return {
        enum.name: enum_of(enum)
        for table in relations.values()
        for column in table.visible_columns
        if (enum := enum_in(column.type)) is not None
    }
