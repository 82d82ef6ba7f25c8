"""A feed's log of one table as of one commit of its file, to be compared with the source's history.

A log is compared stretch by stretch: one of *changes* is bounded by commit timestamps, in whose
order the log grows; one of *shown rows*, which a scan or a schema change has shown as of one
timestamp, by keys.

    stretch of changes      1795… < commit_timestamp <= 1796…
    stretch of shown rows   commit_timestamp = 1795…, [7] < key <= [950]

Rows of the source come as `LogEncoder` makes them, and are hashed and compared by DuckDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from .....catalog.values.column_types import Datum
from .....kvlayer.clock import Timestamp
from ..log_ownership import LogRow
from ..log_table import LOGGED, SHOWN_AGAIN
from .mirror_snapshot import SOURCE, Fingerprint, SnapshotPart

KNOWN = "verified_identities"

_COLUMNS = ("committed_at", "operation", "key", "before", "after")
_IDENTITY = "hash(commit_timestamp, _key)"
_SHOWN = ", ".join(f"'{name}'" for name in SHOWN_AGAIN.values())
_NO_IDENTITIES = pa.table({"id": pa.array([], pa.uint64())})
_GIVEN = f"(SELECT {LOGGED} FROM {SOURCE})"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a log: `after` is exclusive, `upto` inclusive.

    Of changes where `shown_at` is None, between commit timestamps; else of the rows shown as of
    `shown_at`, between keys as the log has them, where None is no bound.
    """

    after: Timestamp | bytes | None
    upto: Timestamp | bytes | None
    shown_at: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class LogMismatch:
    """A row that is not the same on both sides, by its commit timestamp and its key as the log has
    it, None for a truncation.

    Of one that both have, `columns` are those that differ, and `operation` is the log's; otherwise
    `columns` is empty and `operation` None: whose row it is depends on what was asked.
    """

    at: Timestamp
    key: bytes | None
    columns: tuple[str, ...] = ()
    operation: str | None = None


class SnapshotLog(SnapshotPart):
    """A log of one table."""

    def __init__(
        self, row: LogRow, resolved: Timestamp, cursor: duckdb.DuckDBPyConnection | None
    ) -> None:
        super().__init__(resolved, cursor)
        self.row = row

    def first(self) -> Timestamp | None:
        """The least commit timestamp in the log."""
        [(first,)] = self._all(f"SELECT min(commit_timestamp) FROM {self.row.base}")
        return None if first is None else Timestamp(first)  # type: ignore[arg-type]

    def count_upto(self, upto: Timestamp) -> int:
        """The number of the log's rows at or below `upto`."""
        [(count,)] = self._all(
            f"SELECT count(*) FROM {self.row.base} WHERE commit_timestamp <= $1", [upto]
        )
        assert isinstance(count, int), count
        return count

    def shown(self, after: Timestamp, upto: Timestamp) -> dict[Timestamp, Counter[str]]:
        """As of when rows were shown that no commit then wrote, in `(after, upto]`: of each time,
        how many rows each operation has shown."""
        found = self._all(
            f"SELECT commit_timestamp, operation, count(*) FROM {self.row.base} WHERE "
            f"commit_timestamp > $1 AND commit_timestamp <= $2 AND operation IN ({_SHOWN}) "
            "GROUP BY ALL ORDER BY ALL",
            [after, upto],
        )
        shown: dict[Timestamp, Counter[str]] = {}
        for at, operation, count in found:
            shown.setdefault(Timestamp(at), Counter())[str(operation)] = count  # type: ignore
        return shown

    def shown_keys(self, at: Timestamp) -> list[bytes]:
        """The keys of the rows that were shown as of `at`, in order."""
        where, given = _where(Stretch(None, None, at))
        found = self._all(
            f"SELECT DISTINCT _key FROM {self.row.base} WHERE {where} ORDER BY 1", given
        )
        return [bytes(key) for (key,) in found]  # type: ignore[arg-type]

    def shown_later(self, keys: Sequence[bytes], after: Timestamp) -> set[bytes]:
        """Returns the keys of which the log has a row above `after`."""
        found = self._all(
            f"SELECT DISTINCT _key FROM {self.row.base} WHERE commit_timestamp > $1 "
            "AND _key IN (SELECT unnest($2::BLOB[]))",
            [after, list(keys)],
        )
        return {bytes(key) for (key,) in found}  # type: ignore[arg-type]

    def doubled(self, after: Timestamp, upto: Timestamp, limit: int) -> list[LogMismatch]:
        """The rows in `(after, upto]` that are there more than once."""
        return self._mismatches(
            f"SELECT commit_timestamp, _key FROM {self.row.base} WHERE commit_timestamp > $1 "
            f"AND commit_timestamp <= $2 GROUP BY ALL HAVING count(*) > 1 LIMIT {limit}",
            [after, upto],
        )

    def outside(self, start: Timestamp, end: Timestamp, limit: int) -> list[LogMismatch]:
        """The rows below `start` and above `end`."""
        return self._mismatches(
            f"SELECT DISTINCT commit_timestamp, _key FROM {self.row.base} "
            f"WHERE commit_timestamp < $1 OR commit_timestamp > $2 LIMIT {limit}",
            [start, end],
        )

    def fingerprint(self, stretch: Stretch) -> Fingerprint:
        """The fingerprint of a part of the log."""
        where, given = _where(stretch)
        return self._summed(_hash("m"), f"{self.row.base} AS m WHERE {where}", given)

    def fingerprint_of(self, rows: pa.Table) -> Fingerprint:
        """The fingerprint of rows of the source."""
        with self._registered(rows):
            return self._summed(_hash("m"), f"{_GIVEN} AS m")

    def identities(self, rows: pa.Table) -> pa.Table:
        """Eight bytes for each of these rows of the source, by which `surplus` knows it."""
        with self._registered(rows):
            ids = self._all(f"SELECT {_IDENTITY} FROM {_GIVEN}")
        return pa.table([[one for (one,) in ids]], schema=_NO_IDENTITIES.schema)

    def missing(self, rows: pa.Table) -> list[LogMismatch]:
        """The rows of the source that the log lacks."""
        with self._registered(rows):
            return self._mismatches(
                f"SELECT commit_timestamp, _key FROM {_GIVEN} AS s WHERE NOT EXISTS (SELECT 1 "
                f"FROM {self.row.base} AS m WHERE {_same('m', 's')} AND {_between(rows)})"
            )

    def different(self, rows: pa.Table) -> list[LogMismatch]:
        """The rows of the source that the log has otherwise."""
        flags = ", ".join(f"s.{name} IS DISTINCT FROM m.{name}" for name in _COLUMNS)
        with self._registered(rows):
            found = self._all(
                f"SELECT s.commit_timestamp, s._key, m.operation, {flags} FROM {_GIVEN} AS s "
                f"JOIN {self.row.base} AS m ON {_same('m', 's')} "
                f"WHERE {_between(rows)} AND {_hash('s')} <> {_hash('m')}"
            )
        return [
            LogMismatch(
                *_identity(at, key),
                tuple(name for name, one in zip(_COLUMNS, differ, strict=True) if one),
                str(operation),
            )
            for at, key, operation, *differ in found
        ]

    def surplus(
        self, stretch: Stretch, identities: Sequence[pa.Table], limit: int
    ) -> list[LogMismatch]:
        """The rows of a part of the log that are none of the source's."""
        where, given = _where(stretch)
        known = pa.concat_tables([_NO_IDENTITIES, *identities])
        with self._registered(known, KNOWN):
            return self._mismatches(
                f"SELECT DISTINCT commit_timestamp, _key FROM {self.row.base} "
                f"WHERE {where} AND {_IDENTITY} NOT IN (SELECT id FROM {KNOWN}) LIMIT {limit}",
                given,
            )

    def _mismatches(self, sql: str, given: Sequence[object] = ()) -> list[LogMismatch]:
        return [LogMismatch(*_identity(at, key)) for at, key in self._all(sql, given)]


def _identity(at: Datum, key: Datum) -> tuple[Timestamp, bytes | None]:
    assert isinstance(at, int), at
    assert key is None or isinstance(key, bytes), key
    return Timestamp(at), key


def _hash(alias: str) -> str:
    names = ("commit_timestamp", *_COLUMNS, "_key")
    return f"hash({', '.join(f'{alias}.{name}' for name in names)})"


def _same(one: str, other: str) -> str:
    return (
        f"{one}.commit_timestamp = {other}.commit_timestamp "
        f"AND {one}._key IS NOT DISTINCT FROM {other}._key"
    )


def _between(rows: pa.Table) -> str:
    """Returns the condition that bounds a search in the log by the commit timestamps of `rows`."""
    timestamps: list[int] = rows.column("ts").to_pylist()  # type: ignore[assignment]
    return f"m.commit_timestamp BETWEEN {min(timestamps):d} AND {max(timestamps):d}"


def _where(stretch: Stretch) -> tuple[str, list[object]]:
    column, conditions = "commit_timestamp", [f"operation NOT IN ({_SHOWN})"]
    given: list[object] = []
    if stretch.shown_at is not None:
        column, conditions = "_key", [f"operation IN ({_SHOWN})", "commit_timestamp = $1"]
        given.append(stretch.shown_at)
    for sign, bound in ((">", stretch.after), ("<=", stretch.upto)):
        if bound is not None:
            given.append(bound)
            conditions.append(f"{column} {sign} ${len(given)}")
    return " AND ".join(conditions), given
