"""The tables that describe feeds in a mirror's database: owners of tables, and progress.

    _tailrace.mirrors      mirror_schema, mirror_table, rows_schema, rows_table, staged_at,
                           floor_version, store_id, job_id, table_id, version, descriptor
    _tailrace.progress     store_id, job_id, epoch, resolved, frontier, scan_complete, backfills,
                           incarnation, log_index, updated_at
    _tailrace.tombstones   store_id, job_id, table_id, key, commit_timestamp

Several stores may feed one database; a mirror table belongs to one job of one of them. A job that
will not come back releases its tables (`job_id` NULL): they stay as they are, and the next feed
that wants one of those names starts it anew.

Rows go to `rows_table`, which is another than the mirror table while they gather behind a change of
the primary key at `staged_at`. Changes that were decoded under a version below `floor_version` are
in the table, or of no matter to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.descriptor_encoding import decode_descriptor, encode_descriptor
from ....kvlayer.clock import ZERO, Timestamp
from ..protocol import FeedIdentity, SinkRefused
from .connection import Connection
from .table_schema import COMMIT_TIMESTAMP, OWN_SCHEMA, TableSchema

FORMAT = 1
OPENING = 0x7461696C72616365
"""The advisory lock of who prepares a database: several feeds may begin at once."""

DDL = f"""
CREATE SCHEMA {OWN_SCHEMA};
CREATE TABLE {OWN_SCHEMA}.format (format bigint NOT NULL);
INSERT INTO {OWN_SCHEMA}.format VALUES ({FORMAT});
CREATE TABLE {OWN_SCHEMA}.mirrors (
    mirror_schema text NOT NULL,
    mirror_table text NOT NULL,
    rows_schema text NOT NULL,
    rows_table text NOT NULL,
    staged_at bigint,
    floor_version bigint NOT NULL,
    store_id text NOT NULL,
    job_id bigint,
    table_id bigint NOT NULL,
    version bigint NOT NULL,
    descriptor bytea NOT NULL,
    PRIMARY KEY (mirror_schema, mirror_table)
);
CREATE TABLE {OWN_SCHEMA}.progress (
    store_id text NOT NULL,
    job_id bigint NOT NULL,
    epoch bigint NOT NULL,
    resolved bigint,
    frontier bytea,
    scan_complete boolean NOT NULL,
    backfills bytea,
    incarnation text,
    log_index bigint,
    updated_at timestamp with time zone NOT NULL,
    PRIMARY KEY (store_id, job_id)
);
CREATE TABLE {OWN_SCHEMA}.tombstones (
    store_id text NOT NULL,
    job_id bigint NOT NULL,
    table_id bigint NOT NULL,
    key bytea NOT NULL,
    commit_timestamp bigint NOT NULL,
    PRIMARY KEY (store_id, job_id, table_id, key)
);
"""

Lives = Callable[[int], Awaitable[bool]]
"""Whether a changefeed's job of this store may still run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRow:
    """The record of one mirror table in the database: its `place`, and the table that its `rows`
    are in, under the version that they have."""

    place: TableSchema
    rows: TableSchema
    staged_at: Timestamp | None = None
    floor_version: int = 0
    store_id: str
    job_id: int | None

    @property
    def descriptor(self) -> TableDescriptor:
        return self.rows.descriptor


async def prepared(connection: Connection) -> bool:
    """Whether a mirror was ever made in this database. Raises SinkRefused for a format that this
    version does not know."""
    found = await connection.execute(
        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", [OWN_SCHEMA]
    )
    if await found.fetchone() is None:
        return False
    found = await connection.execute(f"SELECT format FROM {OWN_SCHEMA}.format")
    row = await found.fetchone()
    if row is None or row[0] != FORMAT:
        raise SinkRefused(
            f"schema {OWN_SCHEMA} of the database has format {row and row[0]}, and this version "
            f"reads {FORMAT}: feed another database, or drop the schema and the mirror tables"
        )
    return True


async def prepare(connection: Connection) -> None:
    """Makes the tables where there are none. Part of a transaction, and alone in it until its
    end."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", [OPENING])
    if not await prepared(connection):
        await connection.execute(DDL)


async def mirror_named(connection: Connection, schema: str, name: str) -> MirrorRow | None:
    found = await _mirrors(connection, "mirror_schema = %s AND mirror_table = %s", [schema, name])
    return found[0] if found else None


async def mirror_of(
    connection: Connection, identity: FeedIdentity, table_id: int
) -> MirrorRow | None:
    found = await _mirrors(
        connection,
        "store_id = %s AND job_id = %s AND table_id = %s",
        [identity.store_id, identity.job_id, table_id],
    )
    return found[0] if found else None


async def _mirrors(connection: Connection, where: str, values: Sequence[object]) -> list[MirrorRow]:
    found = await connection.execute(
        "SELECT mirror_schema, mirror_table, rows_schema, rows_table, staged_at, floor_version, "
        f"store_id, job_id, descriptor FROM {OWN_SCHEMA}.mirrors WHERE {where}",
        values,
    )
    return [_mirror_row(row) for row in await found.fetchall()]


def _mirror_row(found: tuple[Any, ...]) -> MirrorRow:
    schema, name, rows_schema, rows_table, staged_at, floor, store, job, encoded = found
    descriptor = decode_descriptor(encoded, ZERO)
    assert isinstance(descriptor, TableDescriptor), descriptor
    return MirrorRow(
        place=TableSchema(descriptor, schema=schema, rows=name),
        rows=TableSchema(descriptor, schema=rows_schema, rows=rows_table),
        staged_at=None if staged_at is None else Timestamp(staged_at),
        floor_version=floor,
        store_id=store,
        job_id=job,
    )


async def save_mirror(connection: Connection, row: MirrorRow) -> None:
    """Records what the mirror table stands for now."""
    place, rows, descriptor = row.place, row.rows, row.descriptor
    await connection.execute(
        f"INSERT INTO {OWN_SCHEMA}.mirrors VALUES "
        "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (mirror_schema, mirror_table) "
        "DO UPDATE SET rows_schema = excluded.rows_schema, rows_table = excluded.rows_table, "
        "staged_at = excluded.staged_at, floor_version = excluded.floor_version, "
        "store_id = excluded.store_id, job_id = excluded.job_id, table_id = excluded.table_id, "
        "version = excluded.version, descriptor = excluded.descriptor",
        [
            place.schema,
            place.rows,
            rows.schema,
            rows.rows,
            row.staged_at,
            row.floor_version,
            row.store_id,
            row.job_id,
            descriptor.id,
            descriptor.version,
            encode_descriptor(descriptor),
        ],
    )


async def table_exists(connection: Connection, schema: str, name: str) -> bool:
    """Whether there is any relation of that name."""
    found = await connection.execute(
        "SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n "
        "ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
        [schema, name],
    )
    return await found.fetchone() is not None


async def columns_of(connection: Connection, schema: str, name: str) -> dict[str, str]:
    """The columns of a table as it is, and their types. Empty where there is no such table."""
    found = await connection.execute(
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) "
        "FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid "
        "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = %s AND c.relkind = 'r' AND a.attnum > 0 "
        "AND NOT a.attisdropped",
        [schema, name],
    )
    return dict(await found.fetchall())


async def primary_key_of(connection: Connection, schema: str, name: str) -> set[str]:
    found = await connection.execute(
        "SELECT a.attname FROM pg_catalog.pg_index AS i "
        "JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid "
        "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) "
        "WHERE n.nspname = %s AND c.relname = %s AND i.indisprimary",
        [schema, name],
    )
    return {column for (column,) in await found.fetchall()}


async def check_unaltered(connection: Connection, table: TableSchema) -> None:
    """Raises SinkRefused where the table is not as the feed has made it. Columns, indexes and
    constraints that somebody added are no matter."""
    found = await columns_of(connection, table.schema, table.rows)
    name = f'mirror table "{table.schema}.{table.rows}"'
    again = (
        "create the changefeed again, which begins anew; where it has on_error = 'pause', put that "
        "back as it was and resume it"
    )
    if not found:
        raise SinkRefused(f"{name} was dropped by somebody else: {again}")
    for column, type in zip(table.names, table.all_types, strict=True):
        if found.get(column) != type:
            was = "is gone" if column not in found else f"is of type {found[column]}"
            raise SinkRefused(
                f'{name} was altered by somebody else: its column "{column}" of type {type} {was}; '
                f"{again}"
            )
    if await primary_key_of(connection, table.schema, table.rows) != set(table.key_names):
        keys = ", ".join(table.key_names)
        raise SinkRefused(
            f"{name} was altered by somebody else: its primary key ({keys}) is gone; {again}"
        )


async def check_name(
    connection: Connection,
    schema: str,
    name: str,
    *,
    prepared: bool = True,
    identity: FeedIdentity | None,
    store_id: str,
    lives: Lives,
) -> MirrorRow | None:
    """Returns the record of the name, which `identity` (or a new job of that store) may take.

    None where there is nothing, as in a database that is not `prepared`. Raises SinkRefused where
    another job has it, or where it is a table that no changefeed made.
    """
    row = await mirror_named(connection, schema, name) if prepared else None
    columns = await columns_of(connection, schema, name)
    if row is None or (columns and COMMIT_TIMESTAMP not in columns):
        if await table_exists(connection, schema, name):
            raise SinkRefused(
                f'"{schema}.{name}" is already a table or view in the database, and no changefeed '
                "made it"
            )
        return row
    own = identity is not None and row.job_id == identity.job_id
    if row.job_id is None or (row.store_id == store_id and own):
        return row
    if row.store_id != store_id:
        if not columns:
            return row  # it was dropped, as the message below says
        raise SinkRefused(
            f'mirror table "{schema}.{name}" belongs to changefeed job {row.job_id} of another '
            f"store, {row.store_id}: drop the table if that feed will not come back"
        )
    if await lives(row.job_id):
        raise SinkRefused(
            f'mirror table "{schema}.{name}" belongs to changefeed job {row.job_id}: '
            f"name another by ?table= in the URI, or CANCEL JOB {row.job_id}"
        )
    return row


async def drop_mirror(connection: Connection, row: MirrorRow) -> None:
    """Removes a mirror table that is to begin anew."""
    for table in (row.place, row.rows):
        if COMMIT_TIMESTAMP in await columns_of(connection, table.schema, table.rows):
            await connection.execute(sql.SQL("DROP TABLE {}").format(table.table))
    await connection.execute(
        f"DELETE FROM {OWN_SCHEMA}.mirrors WHERE mirror_schema = %s AND mirror_table = %s",
        [row.place.schema, row.place.rows],
    )


async def release_job(connection: Connection, identity: FeedIdentity) -> None:
    """Gives a job's mirror tables free and forgets its progress. Their rows stay."""
    key = [identity.store_id, identity.job_id]
    where = "WHERE store_id = %s AND job_id = %s"
    await connection.execute(f"DELETE FROM {OWN_SCHEMA}.progress {where}", key)
    await connection.execute(f"DELETE FROM {OWN_SCHEMA}.tombstones {where}", key)
    await connection.execute(f"UPDATE {OWN_SCHEMA}.mirrors SET job_id = NULL {where}", key)


async def release_others(
    connection: Connection, identity: FeedIdentity, table_ids: Iterable[int]
) -> None:
    """Gives a job's mirrors of other tables than these free. Their rows stay."""
    values = [identity.store_id, identity.job_id, list(table_ids)]
    where = "WHERE store_id = %s AND job_id = %s AND NOT table_id = ANY (%s::bigint[])"
    await connection.execute(f"DELETE FROM {OWN_SCHEMA}.tombstones {where}", values)
    await connection.execute(f"UPDATE {OWN_SCHEMA}.mirrors SET job_id = NULL {where}", values)
