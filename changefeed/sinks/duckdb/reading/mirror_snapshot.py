"""A feed's mirror table as of one commit of its file, to be compared with its source.

Rows of the source come as Arrow tables and are hashed and compared by DuckDB, under the types that
the mirror gives their columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from .....catalog.rows.row_codec import codec_for
from .....catalog.values.arrow_columns import AnyArray
from .....catalog.values.column_types import Datum
from .....kvlayer.clock import Timestamp
from .....kvlayer.keys import index_prefix
from ...mirror.conform import KEY_PREFIX_LENGTH
from ...protocol import SinkError
from ..ownership import MirrorRow
from ..table_schema import COMMIT_TIMESTAMP, KEY, SCHEMA, TableSchema, shown_name

SOURCE = "verified_source"
STORE_KEY = "_store_key"

UNSETTLED_MAX = 100_000
"""Rows that a mirror may have above its resolved timestamp: they are read one by one."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A fingerprint of rows: their number, and the sum of their hashes."""

    count: int
    total: int

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.count + other.count, self.total + other.total)


NOTHING = Fingerprint(0, 0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of keys of a table: `after` is exclusive, `upto` inclusive, None is no bound."""

    after: bytes | None
    upto: bytes | None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A key whose row is not the same on both sides, as the store writes the key.

    `missing` rows are in the source alone, `surplus` ones in the mirror alone; of others the names
    of the columns that differ are told.
    """

    key: bytes
    missing: bool = False
    surplus: bool = False
    columns: tuple[str, ...] = ()


class SnapshotPart:
    """A table of the file within the transaction of its reader, to whose lane it belongs."""

    def __init__(self, resolved: Timestamp, cursor: duckdb.DuckDBPyConnection | None) -> None:
        """`resolved` is how far the table had come, zero while it is being scanned. Without a
        cursor it is that of another process: there is its lane."""
        self.resolved = resolved
        self._there = cursor

    @property
    def _cursor(self) -> duckdb.DuckDBPyConnection:
        assert self._there is not None, "in another process"
        return self._there

    @contextmanager
    def _registered(self, rows: pa.Table, name: str = SOURCE) -> Iterator[None]:
        """Shows Arrow rows under a name for the time of the block."""
        self._cursor.complete()
        self._cursor.register(name, rows)
        try:
            yield
        finally:
            self._cursor.complete()
            self._cursor.unregister(name)

    def _summed(self, hashed: str, rows: str, given: Sequence[object] = ()) -> Fingerprint:
        # A sum of unsigned 64-bit hashes is a HUGEINT, which Python has as an int.
        [(count, total)] = self._all(
            f"SELECT count(*), coalesce(sum({hashed}), 0)::VARCHAR FROM {rows}", given
        )
        return Fingerprint(int(str(count)), int(str(total)))

    def _all(self, sql: str, given: Sequence[object] = ()) -> list[tuple[Datum, ...]]:
        return self._cursor.execute(sql, list(given)).fetchall()


class SnapshotTable(SnapshotPart):
    """A mirror table, with the rows that it shows."""

    def __init__(
        self,
        row: MirrorRow,
        job_id: int,
        resolved: Timestamp,
        cursor: duckdb.DuckDBPyConnection | None,
    ) -> None:
        super().__init__(resolved, cursor)
        self.row = row
        self.schema = TableSchema(
            row.descriptor, name=row.name, job_id=job_id, base_name=row.shown_table
        )
        self._job_id = job_id
        schema, types = self.schema, self.schema.column_types()
        self._prefix = index_prefix(row.table_id, row.descriptor.primary_index_id)
        names = [name for name in schema.columns if name != COMMIT_TIMESTAMP]
        self._source_names = names
        cast = [f"CAST({name} AS {types[name]}) AS {name}" for name in names]
        self._hash = f"hash({', '.join(names)})"
        self._source = f"(SELECT {STORE_KEY}, {', '.join(cast)} FROM {SOURCE})"

    def count(self) -> int:
        [(count,)] = self._all(f"SELECT count(*) FROM {self.schema.base}")
        assert isinstance(count, int), count
        return count

    def unsettled(self) -> list[tuple[bytes, Timestamp]]:
        """The keys of rows that are newer than the resolved timestamp, and when they were written.

        Raises SinkError where there are too many.
        """
        key, base = self.schema.key_column, self.schema.base
        found = self._all(
            f"SELECT {key}, {COMMIT_TIMESTAMP} FROM {base} WHERE {COMMIT_TIMESTAMP} > $1 "
            f"LIMIT {UNSETTLED_MAX + 1}",
            [self.resolved],
        )
        if len(found) > UNSETTLED_MAX:
            raise SinkError(
                f'mirror table "{shown_name(self.row.name)}" has more than {UNSETTLED_MAX} rows '
                "above its resolved timestamp: verify it when the feed has caught up"
            )
        return [(self._store_key(value), Timestamp(at)) for value, at in found]  # type: ignore[arg-type]

    def removed(self) -> list[bytes]:
        """The keys that were deleted above the resolved timestamp."""
        found = self._all(
            f"SELECT key FROM {SCHEMA}.tombstones WHERE job_id = $1 AND table_id = $2 "
            "AND commit_timestamp > $3",
            [self._job_id, self.row.table_id, self.resolved],
        )
        return [bytes(key) for (key,) in found]  # type: ignore[arg-type]

    def fingerprint(self, bounds: Bounds) -> Fingerprint:
        """The fingerprint of the settled rows in a range."""
        where, given = self._within(bounds)
        return self._summed(self._hash, f"{self.schema.base} WHERE {where}", given)

    def fingerprint_of(self, rows: pa.Table) -> Fingerprint:
        """The fingerprint of rows of the source, as `source_rows` makes them."""
        with self._registered(rows):
            return self._summed(self._hash, self._source)

    def compare(
        self, rows: pa.Table, bounds: Bounds, *, settled: bool = True, limit: int
    ) -> list[Mismatch]:
        """The keys of a range that differ: those of the mirror's rows that are settled, or those of
        the others."""
        where, given = self._within(bounds, settled=settled)
        key = self.schema.key_column
        columns = self.row.descriptor.visible_columns
        flags = [f"s.{name} IS DISTINCT FROM m.{name}" for name in self.schema.data_columns]
        with self._registered(rows):
            found = self._all(
                f"SELECT s.{STORE_KEY}, m.{key}, m.{COMMIT_TIMESTAMP} IS NULL, {', '.join(flags)} "
                f"FROM (SELECT *, {self._hash} AS h FROM {self._source}) AS s FULL OUTER JOIN "
                f"(SELECT *, {self._hash} AS h FROM {self.schema.base} WHERE {where}) AS m "
                f"ON s.{key} = m.{key} WHERE s.h IS DISTINCT FROM m.h LIMIT {limit}",
                given,
            )
        mismatches: list[Mismatch] = []
        for store_key, value, absent, *differ in found:
            if store_key is None:
                mismatches.append(Mismatch(self._store_key(value), surplus=True))
            elif absent:
                mismatches.append(Mismatch(bytes(store_key), missing=True))  # type: ignore[arg-type]
            else:
                names = [column.name for column, one in zip(columns, differ, strict=True) if one]
                mismatches.append(Mismatch(bytes(store_key), columns=tuple(names)))  # type: ignore[arg-type]
        return mismatches

    # In the loop

    def source_rows(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> pa.Table:
        """Rows of the source as Arrow, under the mirror's version of the table."""
        return self.shown_rows(keys, codec_for(self.row.descriptor).decode_columns(bodies))

    def shown_rows(self, keys: Sequence[bytes], columns: pa.RecordBatch) -> pa.Table:
        """The same of rows that are decoded, or computed by a query."""
        arrays: list[AnyArray] = list(columns.columns)
        if self.schema.key_place is None:
            arrays.append(pa.array([key[KEY_PREFIX_LENGTH:] for key in keys], type=pa.binary()))
        arrays.append(pa.array(keys, type=pa.binary()))
        return pa.Table.from_arrays(arrays, names=[*self._source_names, STORE_KEY])

    # In the lane

    def _within(self, bounds: Bounds, *, settled: bool = True) -> tuple[str, list[object]]:
        given: list[object] = [self.resolved]
        conditions = [f"{COMMIT_TIMESTAMP} {'<=' if settled else '>'} $1"]
        for sign, bound in ((">", bounds.after), ("<=", bounds.upto)):
            if bound is not None:
                given.append(self.schema.key_of(bound))
                conditions.append(f"{self.schema.key_column} {sign} ${len(given)}")
        return " AND ".join(conditions), given

    def _store_key(self, value: Datum) -> bytes:
        if self.schema.key_column == KEY:
            assert isinstance(value, bytes), value
            return self._prefix + value
        return codec_for(self.row.descriptor).encode_key([value])
