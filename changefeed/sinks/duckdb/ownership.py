"""Owners in a mirror file: of the file itself, and of each mirror table.

    _tailrace.file      format, store_id
    _tailrace.mirrors   mirror_table, base_table, shown_table, staged_at, floor_version, job_id,
                        table_id, version, descriptor

A file belongs to one store, and a mirror table to one job. A job that will not come back releases
its tables (`job_id` NULL): they stay readable as they are, and the next feed that wants one of
those names starts it anew.

Rows go to `base_table` and the view shows `shown_table`: another one while rows gather behind a
change of the primary key at `staged_at`. Changes that were decoded under a version below
`floor_version` are in the table, or of no matter to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.descriptor_encoding import decode_descriptor, encode_descriptor
from ....kvlayer.clock import ZERO, Timestamp
from ..protocol import SinkRefused
from . import progress_table
from .log_ownership import log_owner, logged_tables, prepare_logs, release_logs, taken_name
from .schema_step import same_shape
from .stage import drop_stages
from .table_schema import SCHEMA, TableSchema, drop_statements, shown_name

FORMAT = 3

DDL = f"""
CREATE SCHEMA {SCHEMA};
CREATE TABLE {SCHEMA}.file (format BIGINT NOT NULL, store_id VARCHAR NOT NULL);
CREATE TABLE {SCHEMA}.mirrors (
    mirror_table VARCHAR NOT NULL,
    base_table VARCHAR NOT NULL,
    shown_table VARCHAR NOT NULL,
    staged_at BIGINT,
    floor_version BIGINT NOT NULL,
    job_id BIGINT,
    table_id BIGINT NOT NULL,
    version BIGINT NOT NULL,
    descriptor BLOB NOT NULL
);
CREATE TABLE {SCHEMA}.tombstones (
    job_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    key BLOB NOT NULL,
    commit_timestamp BIGINT NOT NULL
);
{progress_table.DDL}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRow:
    """The record of one mirror table in the file."""

    name: str
    base_table: str
    shown_table: str
    staged_at: Timestamp | None
    floor_version: int
    job_id: int | None
    table_id: int
    descriptor: TableDescriptor
    created: bool = False
    """Whether it was made just now."""


def has_schema(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Whether a mirror was ever made in this file."""
    return bool(
        cursor.execute(
            "SELECT 1 FROM duckdb_schemas() WHERE database_name = current_database() "
            "AND schema_name = $1",
            [SCHEMA],
        ).fetchall()
    )


@dataclass(frozen=True, slots=True)
class MirrorSources:
    """The sources of a mirror file's rows: tables of the store, and whether there are tables that
    no changefeed made."""

    table_ids: frozenset[int]
    others: bool


def sources_of(cursor: duckdb.DuckDBPyConnection) -> MirrorSources:
    """Released mirror tables count: their rows are there."""
    rows = (
        cursor.execute(f"SELECT table_id FROM {SCHEMA}.mirrors").fetchall()
        if has_schema(cursor)
        else []
    )
    others = cursor.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
        "AND NOT internal AND schema_name <> $1",
        [SCHEMA],
    ).fetchone()
    assert others is not None, "one row"
    table_ids = {table_id for (table_id,) in rows} | logged_tables(cursor)
    return MirrorSources(frozenset(table_ids), bool(others[0]))


def check_file(cursor: duckdb.DuckDBPyConnection, store_id: str, *, path: object) -> None:
    """Raises SinkRefused when the file is another store's, or of a format we do not know."""
    rows = cursor.execute(f"SELECT format, store_id FROM {SCHEMA}.file").fetchall()
    for format_number, owner in rows:
        if format_number != FORMAT:
            raise SinkRefused(
                f"mirror file {path} has format {format_number}, and this version reads {FORMAT}: "
                "remove it and create its changefeeds again"
            )
        if owner != store_id:
            raise SinkRefused(
                f"mirror file {path} belongs to store {owner}, and this is store {store_id}"
            )


def owners_of(cursor: duckdb.DuckDBPyConnection, names: Sequence[str]) -> list[int]:
    """The jobs that own mirror tables of these names."""
    found = cursor.execute(
        f"SELECT DISTINCT job_id FROM {SCHEMA}.mirrors WHERE job_id IS NOT NULL "
        "AND lower(mirror_table) IN (SELECT lower(unnest($1))) ORDER BY ALL",
        [list(names)],
    ).fetchall()
    logs = [log_owner(cursor, name)[1] for name in names]
    return sorted({owner for (owner,) in found} | {owner for owner in logs if owner is not None})


def prepare_file(cursor: duckdb.DuckDBPyConnection, store_id: str, *, path: object) -> None:
    """Makes the file ours if it is nobody's. Raises SinkRefused if it is somebody else's."""
    if has_schema(cursor):
        check_file(cursor, store_id, path=path)
        prepare_logs(cursor)
        return
    cursor.execute(DDL)
    prepare_logs(cursor)
    cursor.execute(f"INSERT INTO {SCHEMA}.file VALUES ($1, $2)", [FORMAT, store_id])


def check_name(
    cursor: duckdb.DuckDBPyConnection, name: str, *, job_id: int | None, ours: bool = True
) -> MirrorRow | None:
    """The row of the mirror table `name`, or None where the name is free.

    `ours` tells whether the file has our schema. Raises SinkRefused when another job owns the
    table, or when it is somebody's own table or view.
    """
    row = _read(cursor, "lower(mirror_table) = lower($1)", [name]) if ours else None
    if row is not None:
        if row.job_id is not None and row.job_id != job_id:
            raise SinkRefused(
                f'mirror table "{shown_name(name)}" belongs to changefeed job {row.job_id}: '
                f"name another by ?table= in the URI, or CANCEL JOB {row.job_id}"
            )
        return row
    owner = log_owner(cursor, name)[1] if ours else None
    if owner is not None:
        raise SinkRefused(f'"{shown_name(name)}" is a log table of changefeed job {owner}')
    taken = taken_name(cursor, name)
    if taken is not None:
        raise SinkRefused(
            f'"{taken}" is already a table or view in the file, and no changefeed made it'
        )
    return None


def prepare_mirror(
    cursor: duckdb.DuckDBPyConnection, table: TableSchema, *, job_id: int, anew: bool
) -> MirrorRow:
    """Makes the mirror table ready for `job_id`: empty where `anew`, else as it was left.

    A table that the job has keeps its name and its version, which may be above that of `table`:
    the feed goes on from below a change that the mirror has followed. Raises SinkRefused where the
    file has it under another schema.
    """
    known = _read(cursor, "job_id = $1 AND table_id = $2", [job_id, table.descriptor.id])
    row = known or check_name(cursor, table.name, job_id=job_id)
    if row is not None and (anew or row.job_id is None):
        for statement in drop_statements(row.name, [row.base_table, row.shown_table]):
            cursor.execute(statement)
        cursor.execute(f"DELETE FROM {SCHEMA}.mirrors WHERE base_table = $1", [row.base_table])
        row = None
    if row is None:
        for statement in table.create():
            cursor.execute(statement)
        cursor.execute(
            f"INSERT INTO {SCHEMA}.mirrors VALUES ($1, $2, $2, NULL, 0, $3, $4, $5, $6)",
            [table.name, table.base_name, job_id, *_version(table.descriptor)],
        )
        row = _read(cursor, "job_id = $1 AND table_id = $2", [job_id, table.descriptor.id])
        assert row is not None, table
        return replace(row, created=True)
    return _follow(cursor, row, table)


def _follow(cursor: duckdb.DuckDBPyConnection, row: MirrorRow, table: TableSchema) -> MirrorRow:
    """The row, at the table's version or a later one. Raises SinkRefused where it is not of it."""
    of_table = row.table_id == table.descriptor.id
    if of_table and row.descriptor.version >= table.descriptor.version:
        return row
    if not of_table or not same_shape(row.descriptor, table.descriptor):
        raise SinkRefused(
            f'mirror table "{shown_name(row.name)}" holds version {row.descriptor.version} of '
            f"table {row.table_id}, whose schema is another than that of version "
            f"{table.descriptor.version} of table {table.descriptor.id}"
        )
    save_mirror(
        cursor,
        TableSchema(table.descriptor, name=row.name, job_id=table.job_id, base_name=row.base_table),
        shown=row.shown_table,
        staged_at=row.staged_at,
        floor_version=row.floor_version,
    )
    return replace(row, descriptor=table.descriptor)


def save_mirror(
    cursor: duckdb.DuckDBPyConnection,
    table: TableSchema,
    *,
    shown: str,
    staged_at: Timestamp | None,
    floor_version: int,
) -> None:
    """Records what the mirror table stands for now."""
    table_id, version, encoded = _version(table.descriptor)
    cursor.execute(
        f"UPDATE {SCHEMA}.mirrors SET base_table = $1, shown_table = $2, staged_at = $3, "
        "floor_version = $4, version = $5, descriptor = $6 WHERE job_id = $7 AND table_id = $8",
        [
            table.base_name,
            shown,
            staged_at,
            floor_version,
            version,
            encoded,
            table.job_id,
            table_id,
        ],
    )


def release_job(cursor: duckdb.DuckDBPyConnection, job_id: int) -> None:
    """Gives a job's mirror tables free and forgets its progress. Their rows stay."""
    cursor.execute(f"UPDATE {SCHEMA}.mirrors SET job_id = NULL WHERE job_id = $1", [job_id])
    release_logs(cursor, job_id)
    drop_stages(cursor, job_id)
    cursor.execute(f"DELETE FROM {SCHEMA}.tombstones WHERE job_id = $1", [job_id])
    cursor.execute(f"DELETE FROM {SCHEMA}.progress WHERE job_id = $1", [job_id])


def release_others(
    cursor: duckdb.DuckDBPyConnection, job_id: int, table_ids: Sequence[int]
) -> None:
    """Gives a job's mirrors of other tables than these free. Their rows stay."""
    others = f"job_id = {job_id:d} AND NOT list_contains($1::bigint[], table_id)"
    cursor.execute(f"DELETE FROM {SCHEMA}.tombstones WHERE {others}", [list(table_ids)])
    cursor.execute(f"UPDATE {SCHEMA}.mirrors SET job_id = NULL WHERE {others}", [list(table_ids)])
    release_logs(cursor, job_id, but=table_ids)


def _version(descriptor: TableDescriptor) -> tuple[int, int, bytes]:
    return descriptor.id, descriptor.version, encode_descriptor(descriptor)


def rows_of(cursor: duckdb.DuckDBPyConnection, job_id: int) -> list[MirrorRow]:
    """The records of a job's mirror tables in the file, by table."""
    return _read_all(cursor, "job_id = $1 ORDER BY table_id", [job_id])


def _read(
    cursor: duckdb.DuckDBPyConnection, where: str, parameters: list[object]
) -> MirrorRow | None:
    found = _read_all(cursor, where, parameters)
    return found[0] if found else None


def _read_all(
    cursor: duckdb.DuckDBPyConnection, where: str, parameters: list[object]
) -> list[MirrorRow]:
    found = cursor.execute(
        "SELECT mirror_table, base_table, shown_table, staged_at, floor_version, job_id, table_id, "
        f"descriptor FROM {SCHEMA}.mirrors WHERE {where}",
        parameters,
    ).fetchall()
    return [_row(each) for each in found]


def _row(found: tuple[Any, ...]) -> MirrorRow:
    name, base_table, shown_table, staged_at, floor_version, job_id, table_id, encoded = found
    descriptor = decode_descriptor(encoded, ZERO)
    assert isinstance(descriptor, TableDescriptor), descriptor
    return MirrorRow(
        name=name,
        base_table=base_table,
        shown_table=shown_table,
        staged_at=None if staged_at is None else Timestamp(staged_at),
        floor_version=floor_version,
        job_id=job_id,
        table_id=table_id,
        descriptor=descriptor,
    )
