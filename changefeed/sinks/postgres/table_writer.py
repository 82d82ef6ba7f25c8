"""The writer of mirror tables: applies changes inside the flush's transaction.

The newer timestamp wins, whatever the order in which changes come: a row is replaced or removed
only by a change above its `_commit_timestamp`. So a replay changes nothing.

    a few changes    one statement each, sent together (`send_few`)
    many             COPY into a temporary table, then one INSERT … ON CONFLICT and one DELETE
    a first scan     COPY into the mirror table itself, which was empty and gets each key once
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg import sql

from .connection import Connection
from .pending import TableChanges
from .table_schema import COMMIT_TIMESTAMP, KEY, TableSchema

FEW = 50
"""Up to this many changes go as statements of their own: COPY and its merge cost six."""

STEP_ROWS = 500
"""Rows that one step of the loop writes: a millisecond or two."""


class TableWriter:
    """The statements of one version of a mirror table."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        table, names, keys = _table(schema), schema.names, schema.key_names
        replaced = sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(_name(name)) for name in names
        )
        self._merge = sql.SQL(
            "ON CONFLICT ({}) DO UPDATE SET {} WHERE excluded.{ts} > mirror.{ts}"
        ).format(_names(keys), replaced, ts=_name(COMMIT_TIMESTAMP))
        self._into = sql.SQL("INSERT INTO {} AS mirror ({}) ").format(table, _names(names))
        self._upsert = (
            self._into + sql.SQL("VALUES ({}) ").format(_places(schema.all_types)) + self._merge
        )
        same = sql.SQL(" AND ").join(
            sql.SQL("{} = %s::{}").format(_name(name), sql.SQL(type))
            for name, type in zip(keys, schema.key_types, strict=True)
        )
        self._delete = sql.SQL("DELETE FROM {} WHERE {} AND {} < %s::bigint").format(
            table, same, _name(COMMIT_TIMESTAMP)
        )

    async def send_few(self, cursor: psycopg.AsyncCursor[Any], changes: TableChanges) -> None:
        """Applies changes one by one. In a pipeline nothing is waited for."""
        schema = self._schema
        for key, ts, row in changes.upserts:
            await cursor.execute(self._upsert, schema.values(key, row, ts))
        for key, ts in changes.deletions:
            await cursor.execute(self._delete, [*schema.key_of(key), ts])

    async def scan(self, connection: Connection, changes: TableChanges) -> None:
        """Adds rows of a scan to a table that has none of their keys."""
        schema = self._schema
        await _copy(connection, schema.table, schema.names, self._rows(changes))

    async def merge(self, connection: Connection, changes: TableChanges) -> None:
        """Applies many changes."""
        schema = self._schema
        if changes.upserts:
            stage = await self._stage(connection, "upserts", schema.names, schema.all_types)
            await _copy(connection, stage, schema.names, self._rows(changes))
            await connection.execute(
                self._into
                + sql.SQL("SELECT {} FROM {} ").format(_names(schema.names), stage)
                + self._merge,
                [],
            )
            await connection.execute(sql.SQL("DROP TABLE {}").format(stage), [])
        if changes.deletions:
            names = [*schema.key_names, COMMIT_TIMESTAMP]
            stage = await self._stage(connection, "deletions", names, [*schema.key_types, "bigint"])
            gone = ([*schema.key_of(key), ts] for key, ts in changes.deletions)
            await _copy(connection, stage, names, gone)
            await connection.execute(self._delete_all(stage), [])
            await connection.execute(sql.SQL("DROP TABLE {}").format(stage), [])

    def _delete_all(self, stage: sql.Identifier) -> sql.Composed:
        same = sql.SQL(" AND ").join(
            sql.SQL("mirror.{0} = gone.{0}").format(_name(name)) for name in self._schema.key_names
        )
        return sql.SQL(
            "DELETE FROM {} AS mirror USING {} AS gone WHERE {} AND mirror.{ts} < gone.{ts}"
        ).format(_table(self._schema), stage, same, ts=_name(COMMIT_TIMESTAMP))

    async def _stage(
        self, connection: Connection, name: str, names: Sequence[str], types: Sequence[str]
    ) -> sql.Identifier:
        stage = sql.Identifier("pg_temp", f"{KEY}_{name}")
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(_name(column), sql.SQL(type))
            for column, type in zip(names, types, strict=True)
        )
        await connection.execute(
            sql.SQL("CREATE TEMPORARY TABLE {} ({})").format(stage, columns), []
        )
        return stage

    def _rows(self, changes: TableChanges) -> Iterable[list[object]]:
        values = self._schema.values
        return (values(key, row, ts) for key, ts, row in changes.upserts)


async def _copy(
    connection: Connection,
    table: sql.Identifier,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
) -> None:
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(table, columns)
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for place, row in enumerate(rows, start=1):
            await copy.write_row(row)
            if place % STEP_ROWS == 0:
                await asyncio.sleep(0)


# All statements but COPY are given parameters, if none: a percent sign is written twice in them.


def _name(name: str) -> sql.Identifier:
    return sql.Identifier(name.replace("%", "%%"))


def _names(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(_name, names))


def _table(schema: TableSchema) -> sql.Identifier:
    return sql.Identifier(schema.schema.replace("%", "%%"), schema.rows.replace("%", "%%"))


def _places(types: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL("%s::{}").format(sql.SQL(type)) for type in types)
