"""The log tables of a mirror file, and their owners.

    _tailrace.logs              log_table, base_table, job_id, table_id, begins_at
    _tailrace.log_7_104         the changes of table 104 that job 7 has written
    main.orders_log             a view of them

A log has every change above `begins_at`, and where the feed began with a scan the rows as of then;
a log of an earlier version does not tell where it begins. As with mirror tables, a job that will
not come back leaves its logs as they are, and the next feed that wants one of those names starts it
anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from ....kvlayer.clock import ZERO, Timestamp
from ..protocol import SinkRefused
from .table_schema import SCHEMA, mirror_name, name_parts, quoted, shown_name, view_of

LOG_SUFFIX = "_log"


def log_name(name: str) -> str:
    """The name of the log of the mirror table `name`."""
    schema, table = name_parts(name)
    return mirror_name(schema, f"{table}{LOG_SUFFIX}")


def taken_name(cursor: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """The table or view that has that name in the file, whoever made it."""
    found = cursor.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database() "
        "AND lower(table_schema) = lower($1) AND lower(table_name) = lower($2)",
        [*name_parts(name)],
    ).fetchone()
    return None if found is None else str(found[0])


LOGS = f"{SCHEMA}.logs"
_DDL = f"""
CREATE TABLE IF NOT EXISTS {LOGS} (
    log_table VARCHAR NOT NULL,
    base_table VARCHAR NOT NULL,
    job_id BIGINT,
    table_id BIGINT NOT NULL,
    begins_at BIGINT
)
"""

_COLUMNS = """
    commit_timestamp BIGINT NOT NULL,
    committed_at TIMESTAMPTZ NOT NULL,
    operation VARCHAR NOT NULL,
    key JSON,
    before JSON,
    after JSON
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A log table of a job. Nothing in it is above `horizon`; `begins_at` is None where the file
    does not tell."""

    table_id: int
    name: str
    base: str
    horizon: Timestamp
    begins_at: Timestamp | None


def prepare_logs(cursor: duckdb.DuckDBPyConnection) -> None:
    """Makes the table of logs, or brings that of an earlier version up to date."""
    cursor.execute(_DDL)
    if not _tells_begins(cursor):
        cursor.execute(f"ALTER TABLE {LOGS} ADD COLUMN begins_at BIGINT")


def _tells_begins(cursor: duckdb.DuckDBPyConnection) -> bool:
    return bool(
        cursor.execute(
            "SELECT 1 FROM duckdb_columns() WHERE database_name = current_database() "
            "AND schema_name = $1 AND table_name = 'logs' AND column_name = 'begins_at'",
            [SCHEMA],
        ).fetchall()
    )


def has_logs(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Whether the file may have log tables: one of an earlier version has not."""
    return bool(
        cursor.execute(
            "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() "
            "AND schema_name = $1 AND table_name = 'logs'",
            [SCHEMA],
        ).fetchall()
    )


def logged_tables(cursor: duckdb.DuckDBPyConnection) -> set[int]:
    """The ids of the tables of which the file has logs, released ones among them."""
    if not has_logs(cursor):
        return set()
    return {id for (id,) in cursor.execute(f"SELECT table_id FROM {LOGS}").fetchall()}


def logs_of(cursor: duckdb.DuckDBPyConnection, job_id: int) -> list[LogRow]:
    """A job's logs, by table."""
    if not has_logs(cursor):
        return []
    begins_at = "begins_at" if _tells_begins(cursor) else "NULL"
    found = cursor.execute(
        f"SELECT table_id, log_table, base_table, {begins_at} FROM {LOGS} WHERE job_id = $1 "
        "ORDER BY table_id",
        [job_id],
    ).fetchall()
    return [_row(cursor, *each) for each in found]


def _row(
    cursor: duckdb.DuckDBPyConnection,
    table_id: int,
    name: str,
    base_table: str,
    begins_at: int | None,
) -> LogRow:
    base = f"{SCHEMA}.{base_table}"
    (greatest,) = cursor.execute(f"SELECT max(commit_timestamp) FROM {base}").fetchall()[0]
    return LogRow(
        table_id=table_id,
        name=name,
        base=base,
        horizon=Timestamp(greatest or ZERO),
        begins_at=None if begins_at is None else Timestamp(begins_at),
    )


def log_owner(cursor: duckdb.DuckDBPyConnection, name: str) -> tuple[bool, int | None]:
    """Whether a log has that name, and the job that owns it."""
    if not has_logs(cursor):
        return False, None
    found = cursor.execute(
        f"SELECT job_id FROM {LOGS} WHERE lower(log_table) = lower($1)", [name]
    ).fetchone()
    return found is not None, None if found is None else found[0]


def check_log_name(cursor: duckdb.DuckDBPyConnection, name: str, job_id: int | None) -> None:
    """Raises SinkRefused where the name is that of another job's log, or of no log at all."""
    known, owner = log_owner(cursor, name)
    if owner is not None and owner != job_id:
        raise SinkRefused(f'log table "{shown_name(name)}" belongs to changefeed job {owner}')
    if not known and taken_name(cursor, name) is not None:
        raise SinkRefused(
            f'"{shown_name(name)}" is already a table or view in the file, and no log'
        )


def prepare_log(
    cursor: duckdb.DuckDBPyConnection,
    name: str,
    *,
    job_id: int,
    table_id: int,
    anew: bool,
    begins_at: Timestamp | None,
) -> LogRow:
    """Makes the log table ready for the job: empty where `anew`, else as it was left. One that is
    made now begins at `begins_at`.

    Raises SinkRefused where the name is somebody else's.
    """
    base_table = f"log_{job_id}_{table_id}"
    known = cursor.execute(
        f"SELECT log_table, begins_at FROM {LOGS} WHERE job_id = $1 AND table_id = $2",
        [job_id, table_id],
    ).fetchone()
    if known is None:
        check_log_name(cursor, name, job_id)
    if known is not None and not anew:
        return _row(cursor, table_id, known[0], base_table, known[1])
    name = name if known is None else str(known[0])
    _drop(cursor, name)
    cursor.execute(f"CREATE TABLE {SCHEMA}.{base_table} ({_COLUMNS}, _key BLOB)")
    cursor.execute(
        f"CREATE VIEW {view_of(name)} AS SELECT * EXCLUDE (_key) FROM {SCHEMA}.{base_table}"
    )
    cursor.execute(
        f"INSERT INTO {LOGS} (log_table, base_table, job_id, table_id, begins_at) "
        "VALUES ($1, $2, $3, $4, $5)",
        [name, base_table, job_id, table_id, begins_at],
    )
    return _row(cursor, table_id, name, base_table, begins_at)


def _drop(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    """A log that nobody owns any more, or whose job begins anew."""
    found = cursor.execute(
        f"SELECT log_table, base_table FROM {LOGS} WHERE lower(log_table) = lower($1)", [name]
    ).fetchall()
    for log_table, base_table in found:
        cursor.execute(f"DROP VIEW IF EXISTS {view_of(log_table)}")
        cursor.execute(f"DROP TABLE IF EXISTS {SCHEMA}.{quoted(base_table)}")
    cursor.execute(f"DELETE FROM {LOGS} WHERE lower(log_table) = lower($1)", [name])


def release_logs(
    cursor: duckdb.DuckDBPyConnection, job_id: int, *, but: Sequence[int] = ()
) -> None:
    """Gives a job's logs free, but those of the tables `but`. What they hold stays."""
    if has_logs(cursor):
        cursor.execute(
            f"UPDATE {LOGS} SET job_id = NULL WHERE job_id = {job_id:d} "
            "AND NOT list_contains($1::bigint[], table_id)",
            [list(but)],
        )
