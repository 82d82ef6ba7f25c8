"""Compares the log of a table's changes with the history of the table.

History is there down to the garbage-collection threshold: the changes above it are compared, and so
is each scan that the log tells of as of a time above it. Stretch by stretch (`Stretch`) both sides
have a fingerprint; where those differ, the stretch is compared row by row.

    stretch                  history         log
    up to 1795…              50000, 8f3…     50000, 8f3…
    up to 1796…              50000, 1c4…     49999, e02…      -> k=7 at 1795… is missing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from ...catalog.descriptors.system_tables import DESCRIPTOR
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp, format_timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC
from ...kvlayer.keys import index_prefix, table_span
from ..contract.changes import ChangeBatch, ChangeKind
from ..pipeline.boundary import BoundaryPlan
from ..sinks.duckdb.log_table import SHOWN_AGAIN, LogEncoder, truncation
from ..sinks.duckdb.reading.log_snapshot import LogMismatch, SnapshotLog, Stretch
from ..sinks.duckdb.reading.mirror_snapshot import NOTHING, Fingerprint
from ..sinks.duckdb.reading.snapshot import InLane
from ..sinks.duckdb.table_schema import shown_name
from ..sinks.mirror.conform import KEY_PREFIX_LENGTH
from .difference import DIFFERENCES_MAX, LogDifference
from .table_history import TableHistory, Truncation
from .verification import HASHED_ROWS, being_scanned

STRETCH_ROWS = 50_000

FEW_ROWS = 2_000
"""So many rows that were shown as of one time are read by their keys; of more the table is scanned
as of then."""

_KINDS = {operation: kind for kind, operation in SHOWN_AGAIN.items()}


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows as the log has them: `first` and `last` bound them, as a stretch is bounded."""

    rows: pa.Table
    first: Timestamp | bytes
    last: Timestamp | bytes


Pieces = Callable[[Stretch], AsyncGenerator[_Piece, None]]


@dataclass(frozen=True, slots=True)
class LogReport:
    """The differences of a log, and the number of rows that could not be compared: `collected`, at
    or below the threshold."""

    differences: list[LogDifference]
    collected: int
    threshold: Timestamp
    history: TableHistory


class LogVerification:
    """One comparison of one log, up to where its table had come."""

    def __init__(
        self,
        store: StoreAccess,
        descriptors: DescriptorStore,
        log: SnapshotLog,
        in_lane: InLane,
        *,
        scans: bool,
        plan: BoundaryPlan,
    ) -> None:
        """`scans` tells whether the log begins with a scan, and `plan` what schema changes are to
        the feed."""
        self._store = store
        self._descriptors = descriptors
        self._log = log
        self._upto = log.resolved
        self._in_lane = in_lane
        self._scans = scans
        self._plan = plan
        self._encoder = LogEncoder()
        self._found: dict[tuple[Timestamp, bytes | None], LogDifference] = {}
        self._history: TableHistory

    @property
    def name(self) -> str:
        return shown_name(self._log.row.name)

    async def run(self) -> LogReport:
        """Begins again where history is collected meanwhile. Raises SQLError and duckdb.Error."""
        if not self._upto:
            raise being_scanned(f'log "{self.name}"')
        while True:
            table_id = self._log.row.table_id
            threshold = await self._store.gc_threshold_over(
                [table_span(table_id), DESCRIPTOR.primary_span]
            )
            self._found.clear()
            try:
                await self._compare_above(threshold)
            except BatchTimestampBeforeGC as error:
                assert error.threshold > threshold, (error, threshold)
                continue
            collected = await self._in_lane(partial(self._log.count_upto, threshold))
            return LogReport(
                list(self._found.values())[:DIFFERENCES_MAX], collected, threshold, self._history
            )

    async def _compare_above(self, threshold: Timestamp) -> None:
        log, upto = self._log, self._upto
        begins_at = await self._begins_at()
        after = max(begins_at, Timestamp(threshold + 1))
        self._history = await TableHistory.of(
            self._store, self._descriptors, log.row.table_id, after, upto, self._plan
        )
        if after < upto:
            await self._walk(self._changes, Stretch(after, upto))
        readable = max(Timestamp(begins_at - 1), threshold)
        shown = await self._in_lane(partial(log.shown, readable, upto))
        for at in self._history.backfills:
            shown.setdefault(at, Counter())
        if self._scanned_at is not None and self._scanned_at > threshold:
            shown.setdefault(self._scanned_at, Counter())
        for at, operations in sorted(shown.items()):
            await self._compare_shown(at, operations)
        doubled = partial(log.doubled, readable, upto, self._left)
        for mismatch in await self._in_lane(doubled):
            self._note(mismatch, "is in the log more than once")
        outside = partial(log.outside, begins_at, await self._store.now(), self._left)
        for mismatch in await self._in_lane(outside):
            self._note(mismatch, "is not in the table's history")

    async def _begins_at(self) -> Timestamp:
        """Changes count above it."""
        if self._log.row.begins_at is not None:
            return self._log.row.begins_at
        first = await self._in_lane(self._log.first)
        return self._upto if first is None else Timestamp(first - 1)

    @property
    def _scanned_at(self) -> Timestamp | None:
        """As of when the log begins with a scan."""
        return self._log.row.begins_at if self._scans else None

    @property
    def _left(self) -> int:
        """The number of differences that may still be told."""
        return max(0, DIFFERENCES_MAX - len(self._found))

    async def _compare_shown(self, at: Timestamp, operations: Counter[str]) -> None:
        """Compares the rows that `operations` have shown as of `at`, by how many each of them has.
        All are to be there as of a scan with which the log begins, and of a schema change."""
        whole: ChangeKind | None = None
        if at == self._scanned_at:
            whole = ChangeKind.INITIAL_SCAN
        elif at in self._history.backfills:
            whole = ChangeKind.BACKFILL
        kind = whole or _KINDS[operations.most_common(1)[0][0]]
        few = whole is None and operations.total() <= FEW_ROWS
        pieces = partial(self._shown_by_key if few else self._shown, kind)
        await self._walk(pieces, Stretch(None, None, at), lacks=whole)

    # Pieces

    async def _changes(self, stretch: Stretch) -> AsyncGenerator[_Piece, None]:
        after, upto = stretch.after, stretch.upto
        assert isinstance(after, int), after
        assert isinstance(upto, int), upto
        async with aclosing(self._history.changes(after, upto)) as changes:
            async for change in changes:
                if isinstance(change, Truncation):
                    yield _Piece(truncation(change.at), change.at, change.at)
                else:
                    rows = await self._in_lane(partial(self._encoder.rows, change))
                    yield _Piece(rows, change.timestamps[0], change.timestamps[-1])

    async def _shown(self, kind: ChangeKind, stretch: Stretch) -> AsyncGenerator[_Piece, None]:
        after, upto, at = stretch.after, stretch.upto, stretch.shown_at
        assert not isinstance(after, int), after
        assert not isinstance(upto, int), upto
        assert at is not None, stretch
        async with aclosing(self._history.shown_rows(at, kind, after, upto)) as batches:
            async for batch in batches:
                yield await self._by_key(batch)

    async def _shown_by_key(
        self, kind: ChangeKind, stretch: Stretch
    ) -> AsyncGenerator[_Piece, None]:
        assert stretch.shown_at is not None, stretch
        keys = await self._in_lane(partial(self._log.shown_keys, stretch.shown_at))
        batch = await self._history.rows_of(keys, stretch.shown_at, kind)
        if batch is not None:
            yield await self._by_key(batch)

    async def _by_key(self, batch: ChangeBatch) -> _Piece:
        rows = await self._in_lane(partial(self._encoder.rows, batch))
        first, last = batch.keys[0], batch.keys[-1]
        return _Piece(rows, first[KEY_PREFIX_LENGTH:], last[KEY_PREFIX_LENGTH:])

    # Stretches

    async def _walk(
        self, pieces: Pieces, whole: Stretch, *, lacks: ChangeKind | None = ChangeKind.LIVE
    ) -> None:
        """Compares a part of the log. A row of the source that it has not is a change that it
        `lacks`, or where that is None need not be there."""
        after, upto, total, count = whole.after, whole.after, NOTHING, 0
        gathered: list[pa.Table] = []
        async with aclosing(pieces(whole)) as found:
            async for piece in found:
                if count >= STRETCH_ROWS and piece.first != upto:
                    total += await self._fingerprint(gathered)
                    stretch = replace(whole, after=after, upto=upto)
                    await self._close(pieces, stretch, total, lacks)
                    after, total, count, gathered = upto, NOTHING, 0, []
                gathered.append(piece.rows)
                count += len(piece.rows)
                upto = piece.last
                if sum(map(len, gathered)) >= HASHED_ROWS:
                    total += await self._fingerprint(gathered)
                    gathered = []
        total += await self._fingerprint(gathered)
        await self._close(pieces, replace(whole, after=after), total, lacks)

    async def _fingerprint(self, rows: list[pa.Table]) -> Fingerprint:
        if not rows:
            return NOTHING
        return await self._in_lane(partial(self._log.fingerprint_of, pa.concat_tables(rows)))

    async def _close(
        self, pieces: Pieces, stretch: Stretch, total: Fingerprint, lacks: ChangeKind | None
    ) -> None:
        log, in_lane = self._log, self._in_lane
        if await in_lane(partial(log.fingerprint, stretch)) == total:
            return
        identities: list[pa.Table] = []
        async with aclosing(pieces(stretch)) as found:
            async for piece in found:
                if not self._left:
                    return
                if lacks is not None:
                    await self._note_missing(await in_lane(partial(log.missing, piece.rows)), lacks)
                for mismatch in await in_lane(partial(log.different, piece.rows)):
                    if not self._excused(mismatch, shown=stretch.shown_at is not None):
                        self._note(mismatch, f"differs in {', '.join(mismatch.columns)}")
                identities.append(await in_lane(partial(log.identities, piece.rows)))
        for mismatch in await in_lane(partial(log.surplus, stretch, identities, self._left)):
            self._note(mismatch, "is not in the table's history")

    async def _note_missing(self, missing: list[LogMismatch], lacks: ChangeKind) -> None:
        later: set[bytes] = set()
        if lacks is ChangeKind.BACKFILL and missing:
            # The rows of a schema change are shown but for those of which something later was.
            keys = [each.key for each in missing if each.key is not None]
            later = await self._in_lane(partial(self._log.shown_later, keys, missing[0].at))
        for mismatch in missing:
            if mismatch.key not in later:
                self._note(mismatch, "is missing in the log", lacks)

    def _excused(self, mismatch: LogMismatch, *, shown: bool) -> bool:
        """Whether the log has the row as it was committed where it was `shown`, or the other way
        round: whichever came first at a schema change, or at a timestamp that is scanned again."""
        of_shown = mismatch.operation in _KINDS
        if of_shown == shown or not {"operation", "before"}.issuperset(mismatch.columns):
            return False
        return mismatch.at in self._history.backfills or (
            shown and mismatch.at != self._log.row.begins_at
        )

    def _note(self, mismatch: LogMismatch, what: str, lacks: ChangeKind | None = None) -> None:
        at = mismatch.at
        table, key = self._history.near(at), mismatch.key
        if key is not None:
            key = index_prefix(table.id, table.primary_index_id) + key
        kind = SHOWN_AGAIN.get(lacks, "change") if lacks is not None else "row"
        self._found.setdefault(
            (at, key),
            LogDifference(
                log=self.name,
                table=table,
                key=key,
                at=at,
                what=f"{kind} at {format_timestamp(at)} {what}",
                lacks=None if key is None else lacks,
            ),
        )
