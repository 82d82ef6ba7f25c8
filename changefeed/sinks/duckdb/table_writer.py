"""The writer of one mirror table: applies changes inside the flush's transaction.

The newer timestamp wins, whatever the order in which changes come: a row is replaced or removed
only by a change above its `_commit_timestamp`. So a replay changes nothing.

DuckDB plans every statement that writes, and `ON CONFLICT` is the most expensive plan: 1.4 ms for
a single row, where a lookup, an UPDATE or an INSERT by key cost 0.3, 0.5 and 0.4. So single rows go
by lookup and then one of the two; many go through Arrow with `ON CONFLICT`, unless the table has no
key in their range, when a plain INSERT does (twice as fast: loads, and keys that rise).

The statements for single rows are parsed once: parsing is a fifth of what one takes.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from ....kvlayer.clock import Timestamp
from .arrow_source import ArrowSource
from .pending import Changes, ColumnChanges, RowChanges
from .table_schema import COMMIT_TIMESTAMP, KEY, TableSchema

PROBE_ROWS_MIN = 500
"""Rows from which it pays to look whether the table has keys in their range."""


class TableWriter:
    """The statements of one mirror table on one connection."""

    def __init__(self, schema: TableSchema, cursor: duckdb.DuckDBPyConnection) -> None:
        self._schema = schema
        self._cursor = cursor
        # A name of their own for each version: their columns differ.
        suffix = f"{schema.base_name}_{schema.descriptor.version}"
        self._upserts = ArrowSource(cursor, f"upserts_{suffix}", schema.upserts)
        self._removals = ArrowSource(cursor, f"removals_{suffix}", schema.removals)
        # Whether the last row was there before: the next one likely is too.
        self._expects_rows = False
        # No key of the table is above it. None: not known, or the type is not one that Python
        # orders as DuckDB does.
        self._greatest: int | bytes | None = None
        self._compose()

    def _compose(self) -> None:
        base, key, columns = self._schema.base, self._schema.key_column, self._schema.columns
        named = ", ".join(columns)
        others = [column for column in columns if column != key]
        places = ", ".join(f"${index + 1}" for index in range(len(columns)))
        sets = ", ".join(f"{column} = ${index + 3}" for index, column in enumerate(others[:-1]))
        self._lookup = self._parse(f"SELECT {COMMIT_TIMESTAMP} FROM {base} WHERE {key} = $1")
        self._greatest_sql = f"SELECT max({key}) FROM {base}"
        self._insert = self._parse(f"INSERT INTO {base} ({named}) VALUES ({places})")
        self._update = self._parse(
            f"UPDATE {base} SET {sets}{', ' if sets else ''}{COMMIT_TIMESTAMP} = $2 "
            f"WHERE {key} = $1 AND {COMMIT_TIMESTAMP} < $2"
        )
        self._delete = self._parse(
            f"DELETE FROM {base} WHERE {key} = $1 AND {COMMIT_TIMESTAMP} < $2"
        )
        self._probe_sql = f"SELECT 1 FROM {base} WHERE {key} >= $1 AND {key} <= $2 LIMIT 1"
        self._insert_many_sql = f"INSERT INTO {base} ({named}) SELECT * FROM {self._upserts.name}"
        replaced = ", ".join(f"{column} = excluded.{column}" for column in others)
        self._merge_many_sql = (
            f"INSERT INTO {base} AS mirror ({named}) SELECT * FROM {self._upserts.name} "
            f"ON CONFLICT ({key}) DO UPDATE SET {replaced} "
            f"WHERE excluded.{COMMIT_TIMESTAMP} > mirror.{COMMIT_TIMESTAMP}"
        )
        self._delete_many_sql = (
            f"DELETE FROM {base} AS mirror USING {self._removals.name} AS gone "
            f"WHERE mirror.{key} = gone.{KEY} "
            f"AND mirror.{COMMIT_TIMESTAMP} < gone.{COMMIT_TIMESTAMP}"
        )
        self._key_index = columns.index(key)

    def _parse(self, text: str) -> duckdb.Statement:
        [statement] = self._cursor.extract_statements(text)
        return statement

    def close(self) -> None:
        """Another writer takes the table over."""
        self._upserts.close()
        self._removals.close()

    def apply(self, changes: Changes) -> None:
        """Applies changes of different keys. Raises duckdb.Error."""
        match changes:
            case RowChanges():
                for key, ts, row in changes.changes:
                    if row is None:
                        self._change(self._delete, [self._schema.key_of(key), ts])
                    else:
                        self._upsert(ts, self._schema.parameters(key, row))
            case ColumnChanges():
                self._apply_columns(changes)

    def _upsert(self, ts: Timestamp, values: list[object]) -> None:
        index = self._key_index
        key_value = values[index]
        update = [key_value, ts, *values[:index], *values[index + 1 :]]
        if self._expects_rows and self._change(self._update, update):
            return
        found = None if self._above_all(key_value) else self._find(key_value)
        self._expects_rows = found is not None
        if found is None:
            self._change(self._insert, [*values, ts])
        elif found[0] < ts:
            self._change(self._update, update)

    def _change(self, statement: duckdb.Statement, parameters: list[object]) -> int:
        """Runs a statement to its end and says how many rows it changed.

        To its end: outside of a transaction it has committed only when its result was read.
        """
        counted = self._cursor.execute(statement, parameters).fetchone()
        assert counted is not None, statement
        return int(counted[0])

    def _find(self, key: object) -> tuple[Timestamp] | None:
        found = self._cursor.execute(self._lookup, [key]).fetchone()
        return None if found is None else (Timestamp(found[0]),)

    def _above_all(self, key: object) -> bool:
        """Whether `key` is above every key that the table has had: keys often only rise."""
        if type(key) is not int and type(key) is not bytes:
            return False
        if self._greatest is None:
            found = self._cursor.execute(self._greatest_sql).fetchone()
            assert found is not None
            self._greatest = key if found[0] is None else found[0]
            if found[0] is None:
                return True
        assert type(key) is type(self._greatest), (key, self._greatest)
        if key <= self._greatest:  # type: ignore[operator]
            return False
        self._greatest = key
        return True

    def _apply_columns(self, changes: ColumnChanges) -> None:
        self._greatest = None
        if changes.upserts is not None:
            absent = self._absent(changes.upserts)
            with self._upserts.holding(changes.upserts):
                self._cursor.execute(self._insert_many_sql if absent else self._merge_many_sql)
        if changes.removals is not None:
            with self._removals.holding(changes.removals):
                self._cursor.execute(self._delete_many_sql)

    def _absent(self, rows: pa.Table) -> bool:
        """Whether the table holds no key between the least and the greatest of these."""
        if rows.num_rows < PROBE_ROWS_MIN:
            return False
        keys = rows.column(self._key_index)
        if isinstance(keys.type, pa.UuidType):
            return False  # Arrow does not order them
        least, greatest = pc.min(keys).as_py(), pc.max(keys).as_py()
        found = self._cursor.execute(self._probe_sql, [least, greatest])
        return found.fetchone() is None
