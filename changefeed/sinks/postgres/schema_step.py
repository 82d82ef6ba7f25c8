"""Schema steps: how a mirror table follows its source from one version to the next.

    ADD COLUMN extra INT8 DEFAULT 7    ALTER TABLE … ADD COLUMN extra bigint DEFAULT 7
    RENAME COLUMN note TO remark       ALTER TABLE … RENAME COLUMN note TO remark
    DROP COLUMN remark                 ALTER TABLE … DROP COLUMN remark
    ALTER COLUMN … TYPE                DROP COLUMN, then ADD COLUMN: the backfill brings its values
    TRUNCATE                           TRUNCATE
    ALTER PRIMARY KEY                  another table, which takes the name when it is complete

Columns are known by id, so that a rename is a rename, and views over the mirror follow it. What
depends on a column or a table that goes (a view, a foreign key) stops the feed until it is dropped:
nothing that somebody else made is removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from ....catalog.descriptors.descriptor import Column
from ....catalog.values.column_types import ColumnType, Datum
from ....schemafeed.table_events import EventKind, TableEvent
from ..mirror.gathered import SchemaStep
from .table_schema import (
    OWN_SCHEMA,
    TEMPORARY,
    TableSchema,
    check_columns,
    type_name,
    value_writer,
)

Step = SchemaStep[TableSchema, sql.Composed]
"""The statements of one schema event for a mirror table in PostgreSQL."""


def plan_step(before: TableSchema, event: TableEvent, *, job_id: int) -> Step:
    """Returns the statements that take the mirror table of `before` over `event`. Raises
    SinkRefused."""
    after = event.after
    check_columns(after)
    if event.before.primary_key != after.primary_key:
        staged = TableSchema(
            after, schema=OWN_SCHEMA, rows=f"rows_{job_id}_{after.id}_v{after.version}"
        )
        return SchemaStep(
            before=before,
            after=staged,
            statements=[staged.create()],
            floor=True,
            staged_at=event.timestamp,
        )
    renewed = TableSchema(after, schema=before.schema, rows=before.rows)
    emptied = EventKind.TRUNCATE in event.kinds
    statements = [sql.SQL("TRUNCATE {}").format(before.table)] if emptied else []
    statements += _column_changes(before, renewed)
    return SchemaStep(before=before, after=renewed, statements=statements, floor=emptied)


def turn_over(
    shown: sql.Identifier, staged: TableSchema, *, place: TableSchema
) -> list[sql.Composed]:
    """The statements that put a table that is complete in the place of the one that is shown."""
    return [
        sql.SQL("DROP TABLE {}").format(shown),
        sql.SQL("ALTER TABLE {} SET SCHEMA {}").format(staged.table, sql.Identifier(place.schema)),
        sql.SQL("ALTER TABLE {} RENAME TO {}").format(
            sql.Identifier(place.schema, staged.rows), sql.Identifier(place.rows)
        ),
    ]


def _column_changes(before: TableSchema, after: TableSchema) -> list[sql.Composed]:
    """Drops columns before it adds any: a retyped column has the name of the one it replaces."""
    old = {column.id: column for column in before.descriptor.visible_columns}
    new = {column.id: column for column in after.descriptor.visible_columns}
    statements = [
        _alter(before, "DROP COLUMN {}", old[id].name) for id in sorted(old.keys() - new.keys())
    ]
    kept = [(old[id], column) for id, column in new.items() if id in old]
    statements += _renames(before, [(a, b) for a, b in kept if a.name != b.name])
    for was, column in kept:
        statements += _retyped(after, was, column)
    for id, column in new.items():
        if id not in old:
            statements.append(_added(before, column))
    return statements


def _renames(table: TableSchema, pairs: Sequence[tuple[Column, Column]]) -> list[sql.Composed]:
    """By way of names that nobody has, where there are several: two may have changed places."""
    rename = "RENAME COLUMN {} TO {}"
    if len(pairs) < 2:
        return [_alter(table, rename, was.name, now.name) for was, now in pairs]
    return [
        *[_alter(table, rename, was.name, f"{TEMPORARY}{was.id}") for was, _ in pairs],
        *[_alter(table, rename, f"{TEMPORARY}{was.id}", now.name) for was, now in pairs],
    ]


def _retyped(table: TableSchema, was: Column, column: Column) -> list[sql.Composed]:
    name = sql.Identifier(column.name)
    type = sql.SQL(type_name(column.type))
    if type_name(was.type) == type_name(column.type):
        return []
    return [
        sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {} USING {}::{}").format(
            table.table, name, type, name, type
        )
    ]


def _added(table: TableSchema, column: Column) -> sql.Composed:
    type = sql.SQL(type_name(column.type))
    added = sql.SQL("ALTER TABLE {} ADD COLUMN {} {}").format(
        table.table, sql.Identifier(column.name), type
    )
    if column.missing is None:
        return added
    return added + sql.SQL(" DEFAULT {}::{}").format(literal(column.type, column.missing), type)


def literal(type: ColumnType, value: Datum) -> sql.Literal:
    """A datum as DDL has it, which takes no parameters."""
    write = value_writer(type)
    return sql.Literal(value if write is None else write(value))


def _alter(table: TableSchema, change: str, *names: str) -> sql.Composed:
    return sql.SQL("ALTER TABLE {} ").format(table.table) + sql.SQL(change).format(
        *map(sql.Identifier, names)
    )
