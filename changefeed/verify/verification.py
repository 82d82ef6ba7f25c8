"""Compares the tables of a feed with a mirror of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.span import Span
from ..contract.changes import ChangeKind, StageTimes
from ..contract.queries import CompiledQuery, FeedQuery, QueryCompiler
from ..pipeline.decode import decode, slice_rows
from ..sinks.duckdb.reading.mirror_snapshot import (
    NOTHING,
    Bounds,
    Fingerprint,
    Mismatch,
    SnapshotTable,
)
from ..sinks.duckdb.reading.snapshot import InLane, MirrorSnapshot
from ..sinks.duckdb.schema_step import same_shape
from ..sinks.duckdb.table_schema import shown_name
from ..targets import Versions
from .difference import DIFFERENCES_MAX, Difference

RANGE_ROWS_MIN = 50_000
RANGES_MAX = 64
"""A mirror's range is found by its key, for which DuckDB may look at every block of the table."""

HASHED_ROWS = 20_000
"""Rows that DuckDB hashes at once: a call of it costs as much as some thousand rows."""

PIECE_BYTES = 2 * 1024 * 1024
"""The size of rows that are decoded in one step of the loop, beside `slice_rows`."""


Piece = tuple[list[bytes], list[bytes]]
"""Keys and bodies."""


@dataclass(frozen=True, slots=True)
class VerifiedQuery:
    """The query that a mirror shows. It reads nothing of a row but its values: so what it shows of
    the source, as of a timestamp, is what the mirror has to hold, however the rows came."""

    query: FeedQuery
    compiler: QueryCompiler
    created_at: Timestamp


class Verification:
    """One comparison of all tables in a snapshot of a mirror."""

    def __init__(
        self,
        store: StoreAccess,
        descriptors: DescriptorStore,
        snapshot: MirrorSnapshot,
        in_lane: InLane,
        query: VerifiedQuery | None = None,
    ) -> None:
        """`query` is what the mirror shows of its one table."""
        self._query = query
        self._compiled: tuple[TableDescriptor, CompiledQuery] | None = None
        self._store = store
        self._descriptors = descriptors
        self._snapshot = snapshot
        self._in_lane = in_lane
        self._found: list[Difference] = []

    async def run(self) -> list[Difference]:
        """The rows that differ, `DIFFERENCES_MAX` at most. Raises SQLError, SinkError and
        duckdb.Error."""
        for table in self._snapshot.tables:
            await self._check_schema(table)
        for table in self._snapshot.tables:
            await self._verify(table)
        return self._found[:DIFFERENCES_MAX]

    async def _check_schema(self, table: SnapshotTable) -> None:
        name = shown_name(table.row.name)
        if not table.resolved:
            raise being_scanned(f'mirror table "{name}"')
        found = await self._descriptors.read_at(table.row.table_id, table.resolved)
        if not isinstance(found, TableDescriptor):
            raise _schema_ahead(name)
        if self._query is not None:
            compiled = await self._query.compiler.compile(self._query.query.text, found, found)
            self._compiled = found, compiled
            found = compiled.result
        if table.row.staged_at is not None or not same_shape(table.row.descriptor, found):
            raise _schema_ahead(name)

    async def _verify(self, table: SnapshotTable) -> None:
        unsettled = dict(await self._in_lane(table.unsettled))
        skipped = {*unsettled, *await self._in_lane(table.removed)}
        rows_max = max(RANGE_ROWS_MIN, await self._in_lane(table.count) // RANGES_MAX)
        after: bytes | None = None
        gathered: list[pa.Table] = []
        total = NOTHING
        async with aclosing(self._pieces(table, Bounds(None, None), skipped)) as pieces:
            async for keys, bodies in pieces:
                gathered.append(await self._source_rows(table, (keys, bodies)))
                if sum(map(len, gathered)) < HASHED_ROWS:
                    continue
                total += await self._fingerprint(table, gathered)
                gathered = []
                if total.count >= rows_max:
                    await self._close_range(table, Bounds(after, keys[-1]), total, skipped)
                    after, total = keys[-1], NOTHING
        total += await self._fingerprint(table, gathered)
        await self._close_range(table, Bounds(after, None), total, skipped)
        await self._check_unsettled(table, unsettled)

    async def _fingerprint(self, table: SnapshotTable, rows: list[pa.Table]) -> Fingerprint:
        if not rows:
            return NOTHING
        return await self._in_lane(partial(table.fingerprint_of, pa.concat_tables(rows)))

    async def _close_range(
        self, table: SnapshotTable, bounds: Bounds, total: Fingerprint, skipped: set[bytes]
    ) -> None:
        if await self._in_lane(partial(table.fingerprint, bounds)) == total:
            return
        after = bounds.after
        last: Piece = ([], [])
        async with aclosing(self._pieces(table, bounds, skipped)) as pieces:
            async for piece in pieces:
                if last[0]:
                    await self._compare(table, last, Bounds(after, last[0][-1]))
                    after = last[0][-1]
                last = piece
        await self._compare(table, last, Bounds(after, bounds.upto))

    async def _compare(
        self, table: SnapshotTable, piece: Piece, bounds: Bounds, *, settled: bool = True
    ) -> None:
        left = DIFFERENCES_MAX - len(self._found)
        if left <= 0:
            return
        rows = await self._source_rows(table, piece)
        found = await self._in_lane(
            partial(table.compare, rows, bounds, settled=settled, limit=left)
        )
        self._found += [_difference(table.row.descriptor, mismatch) for mismatch in found]

    async def _source_rows(self, table: SnapshotTable, piece: Piece) -> pa.Table:
        """The rows that the mirror has to hold of these rows of the source. Raises SQLError where
        the query fails."""
        keys, bodies = piece
        if self._query is None or not keys:
            return table.source_rows(keys, bodies)
        assert self._compiled is not None, "the schema is looked at first"
        source, compiled = self._compiled
        batch = decode(
            Versions(keys, [*bodies], [table.resolved] * len(keys)),
            source,
            stages=StageTimes(),
            kind=ChangeKind.INITIAL_SCAN,
        )
        answer = await compiled.evaluate(
            batch, created_at=self._query.created_at, knows_previous=False
        )
        return table.shown_rows([keys[place] for place in answer.places], answer.rows)

    async def _pieces(
        self, table: SnapshotTable, bounds: Bounds, skipped: set[bytes]
    ) -> AsyncGenerator[Piece, None]:
        """The source's rows in a range, some at a time."""
        span = table.row.descriptor.primary_span
        start = span.start if bounds.after is None else bounds.after + b"\x00"
        end = span.end if bounds.upto is None else bounds.upto + b"\x00"
        keys: list[bytes] = []
        bodies: list[bytes] = []
        size, rows_max = 0, slice_rows(table.row.descriptor)
        reader = self._store.snapshot(table.resolved)
        async with aclosing(reader.scan_slices(Span(start, end))) as slices:
            async for rows in slices:
                if skipped:
                    rows = [row for row in rows if row[0] not in skipped]
                for first in range(0, len(rows), rows_max):
                    part = rows[first : first + rows_max]
                    if keys and (len(keys) + len(part) > rows_max or size >= PIECE_BYTES):
                        yield keys, bodies
                        keys, bodies, size = [], [], 0
                    keys += [key for key, _ in part]
                    bodies += [body for _, body in part]
                    size += sum(len(body) for _, body in part)
                await asyncio.sleep(0)
        if keys:
            yield keys, bodies

    async def _check_unsettled(
        self, table: SnapshotTable, unsettled: dict[bytes, Timestamp]
    ) -> None:
        """Rows of the mirror above its resolved timestamp: each as of its own."""
        now = await self._store.now()
        keys: list[bytes] = []
        bodies: list[bytes] = []
        for key, at in unsettled.items():
            body = None if at > now else await self._store.snapshot(at).get(key)
            if body is not None:
                keys.append(key)
                bodies.append(body)
        if unsettled:
            whole = Bounds(None, None)
            await self._compare(table, (keys, bodies), whole, settled=False)


def being_scanned(what: str) -> SQLError:
    """Raised for what cannot be compared before all of its rows are there."""
    return SQLError(
        "55000",
        f"the rows of {what} are still being scanned",
        hint="Verify it again when the scan has ended: SHOW CHANGEFEED JOBS tells how far it is.",
    )


def _schema_ahead(name: str) -> SQLError:
    return SQLError(
        "55000",
        f'mirror table "{name}" is behind a schema change that is not resolved yet',
        hint="Verify it again in a moment, or when its backfill has ended.",
    )


def _difference(table: TableDescriptor, mismatch: Mismatch) -> Difference:
    if mismatch.missing:
        what = "missing in the sink"
    elif mismatch.surplus:
        what = "not in the table"
    else:
        what = f"differs in {', '.join(mismatch.columns)}"
    return Difference(table, mismatch.key, what)
