"""Stages: changes of one table that wait in the file until their timestamp is resolved.

    _tailrace.staged_7_104_3    c1, c2, _commit_timestamp, _deleted

A stage has the columns of the base table under one version of the source table, no key, and every
change, several of a key among them. What moves from it into the base table is, for each key, its
newest change at or below a timestamp.
"""

from __future__ import annotations

import duckdb

from ....kvlayer.clock import ZERO, Timestamp
from .arrow_source import ArrowSource
from .pending import Changes, ColumnChanges, RowChanges
from .schema_step import Step
from .table_schema import COMMIT_TIMESTAMP, KEY, SCHEMA, TableSchema, quoted

DELETED = "_deleted"


class Stage:
    """The changes under one version of a table. `at` is from when on that version holds, and
    `step` what the base table has to go through for it; the first stage has neither.

    Its fields belong to the loop while no flush runs, and to the file's lane while one does.
    """

    def __init__(
        self,
        schema: TableSchema,
        cursor: duckdb.DuckDBPyConnection,
        *,
        step: Step | None = None,
        at: Timestamp = ZERO,
    ) -> None:
        self.schema = schema
        self.step = step
        self.at = at
        self.first_version = schema.descriptor.version
        self.oldest: Timestamp | None = None
        """No change that waits here is below it; None where none waits."""
        self._count = 0
        self._deletes = False
        self._made = False
        self._cursor = cursor
        self._table = f"{SCHEMA}.{quoted(self.name)}"
        self._upserts = ArrowSource(cursor, f"upserts_{self.name}", schema.upserts)
        self._removals = ArrowSource(cursor, f"removals_{self.name}", schema.removals)
        self._compose()

    @property
    def name(self) -> str:
        """The staging table's."""
        return f"{stage_prefix(self.schema.job_id)}{self.schema.descriptor.id}_{self.first_version}"

    def _compose(self) -> None:
        schema, stage = self.schema, self._table
        base, key, columns = schema.base, schema.key_column, schema.columns
        named = ", ".join(columns)
        places = ", ".join(f"${index + 1}" for index in range(len(columns)))
        self._insert = f"INSERT INTO {stage} ({named}, {DELETED}) VALUES ({places}, false)"
        self._insert_many = (
            f"INSERT INTO {stage} ({named}, {DELETED}) SELECT *, false FROM {self._upserts.name}"
        )
        gone = f"INSERT INTO {stage} ({key}, {COMMIT_TIMESTAMP}, {DELETED})"
        self._delete = f"{gone} VALUES ($1, $2, true)"
        self._delete_many = (
            f"{gone} SELECT {KEY}, {COMMIT_TIMESTAMP}, true FROM {self._removals.name}"
        )
        due = f"FROM {stage} WHERE {COMMIT_TIMESTAMP} <= $1"
        newest = f"(SELECT DISTINCT ON ({key}) * {due} ORDER BY {COMMIT_TIMESTAMP} DESC)"
        replaced = ", ".join(f"{name} = excluded.{name}" for name in columns if name != key)
        self._move_upserts = (
            f"INSERT INTO {base} AS mirror ({named}) SELECT {named} FROM {newest} "
            f"WHERE NOT {DELETED} ON CONFLICT ({key}) DO UPDATE SET {replaced} "
            f"WHERE excluded.{COMMIT_TIMESTAMP} > mirror.{COMMIT_TIMESTAMP}"
        )
        self._move_deletes = (
            f"DELETE FROM {base} AS mirror USING (SELECT {key} AS gone_key, {COMMIT_TIMESTAMP} "
            f"AS gone_at FROM {newest} WHERE {DELETED}) WHERE mirror.{key} = gone_key "
            f"AND mirror.{COMMIT_TIMESTAMP} < gone_at"
        )
        self._forget = f"DELETE {due}"

    def note_oldest(self, oldest: Timestamp) -> None:
        """Changes from `oldest` on are about to be written here."""
        self.oldest = oldest if self.oldest is None else min(oldest, self.oldest)

    # In the file's lane

    def write(self, changes: Changes) -> None:
        """Adds changes. Raises duckdb.Error."""
        if not self._made:
            self._make()
        self._deletes = self._deletes or bool(changes.deletions)
        match changes:
            case RowChanges():
                self._count += len(changes.changes)
                for key, ts, row in changes.changes:
                    if row is None:
                        self._run(self._delete, [self.schema.key_of(key), ts])
                    else:
                        self._run(self._insert, [*self.schema.parameters(key, row), ts])
            case ColumnChanges():
                self._count += len(changes.deletions)
                if changes.upserts is not None:
                    self._count += changes.upserts.num_rows
                    with self._upserts.holding(changes.upserts):
                        self._run(self._insert_many, [])
                if changes.removals is not None:
                    with self._removals.holding(changes.removals):
                        self._run(self._delete_many, [])

    @property
    def made(self) -> bool:
        """Whether the staging table is there: before, the first write is two statements."""
        return self._made

    def _make(self) -> None:
        types = self.schema.column_types()
        named = ", ".join(f"{name} {type}" for name, type in types.items())
        self._cursor.execute(f"CREATE TABLE {self._table} ({named}, {DELETED} BOOLEAN NOT NULL)")
        self._made = True

    def move(self, upto: Timestamp) -> None:
        """Moves what is at or below `upto` into the base table. Raises duckdb.Error."""
        if self.oldest is None or self.oldest > upto:
            return
        if self._deletes:
            self._run(self._move_deletes, [upto])
        self._run(self._move_upserts, [upto])
        self._count -= self._run(self._forget, [upto])
        assert self._count >= 0, self
        self.oldest = None if self._count == 0 else Timestamp(upto + 1)
        self._deletes = self._deletes and self._count > 0

    def close(self) -> None:
        """The version is over and everything under it has moved."""
        assert self._count == 0, self
        self._upserts.close()
        self._removals.close()
        if self._made:
            self._cursor.execute(f"DROP TABLE {self._table}")

    def _run(self, statement: str, parameters: list[object]) -> int:
        counted = self._cursor.execute(statement, parameters).fetchone()
        assert counted is not None, statement
        return int(counted[0])

    def __repr__(self) -> str:
        return f"<Stage {self.name} {self._count} from {self.oldest}>"


def stage_prefix(job_id: int) -> str:
    """The prefix of the names of a job's staging tables."""
    return f"staged_{job_id}_"


def drop_stages(cursor: duckdb.DuckDBPyConnection, job_id: int) -> None:
    """Forgets all that a job has staged: it lies above the job's progress, and comes again."""
    found = cursor.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = $1 AND starts_with(table_name, $2)",
        [SCHEMA, stage_prefix(job_id)],
    ).fetchall()
    for (name,) in found:
        cursor.execute(f"DROP TABLE {SCHEMA}.{quoted(name)}")
