"""Rows that were emitted and are above how far their feed has come: they wait until all at or below
them is there.

    held       k1@10  k2@30 | k1@20
    cut at 20
    due        k1@10  k1@20        in the order in which they came
    held       k2@30

So what a sink commits is everything up to its cut and nothing above it, and what a feed that starts
again is to send is told by the cut alone. Rows beyond `MEMORY_BYTES_MAX` wait in a temporary file,
which ends with the process. `HeldMessages` are the rows of a sink of messages, encoded.

A *live* row may come twice, where a range feed began anew: `take_once` finds that among all the
rows that are due, which may be those of hours, and holds no more than a part of their keys in
memory.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import IO, Any, Literal, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.frontier import part_of
from ...kvlayer.process.offload import OffloadLane
from ...kvlayer.span import EVERYTHING, Span
from ..contract.changes import ChangeBatch, ChangeKind
from ..encode import EncodedBatch
from .protocol import SinkError

T = TypeVar("T")

COMMIT_TIMESTAMP = "_commit_timestamp"
"""The column that each table of rows has."""

ROW_KEY = "_key"
"""The column of the store's keys, where a cut differs from key to key, and where rows are live."""

TOPIC, KEY, VALUE, APART = "topic", "key", "value", "apart"
"""Columns of `HeldMessages`. A VALUE of NULL is a message without a value."""

_IN_ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    (COMMIT_TIMESTAMP, "ascending"),
    (APART, "descending"),
]

MEMORY_BYTES_MAX = 32 << 20
"""Arrow bytes of rows that wait, of a feed: what is shown again waits as a whole."""

SEGMENT_BYTES = 2048
"""Memory of a batch beside its rows."""

SEEN_BYTES_MAX = 4 << 20
"""Bytes of live rows whose changes are told apart by a set of them, of some times that size."""

REPETITIONS_MEMORY = "64MB"
"""Of DuckDB, which finds repetitions among more rows than those: what is beyond it goes to disk."""

Change = tuple[bytes, int]
"""A key and the timestamp of its version."""

_CHANGES = pa.schema({ROW_KEY: pa.binary()}).append(pa.field(COMMIT_TIMESTAMP, pa.int64()))


LAST = Timestamp(2**63 - 1)


class Cut:
    """A frontier's entries, up to which rows are due. Keys in none of them stand at `outside`: by
    default the feed has left them, and all that waits of them is due."""

    def __init__(
        self, entries: Iterable[tuple[Span, Timestamp]], *, outside: Timestamp = LAST
    ) -> None:
        self._outside = outside
        self._entries = sorted(entries)
        self._starts = [span.start for span, _ in self._entries]

    @classmethod
    def at_one(cls, timestamp: Timestamp) -> Cut:
        """The cut of a feed all of whose keys have come to `timestamp`."""
        return cls([], outside=timestamp)

    def range(self, span: Span) -> tuple[Timestamp, Timestamp]:
        """The least and the greatest that a key of `span` may have reached."""
        reached = [at for _, at in part_of(self._entries, span)]
        return min(reached, default=self._outside), max(reached, default=self._outside)

    def at(self, key: bytes) -> Timestamp:
        """The timestamp up to which rows of `key` are due."""
        place = bisect_right(self._starts, key) - 1
        if place < 0 or not self._entries[place][0].contains(key):
            return self._outside
        return self._entries[place][1]

    def upto(self, timestamp: Timestamp) -> Cut:
        """The cut where it is below `timestamp`, and else that."""
        entries = [(span, min(at, timestamp)) for span, at in self._entries]
        return Cut(entries, outside=min(self._outside, timestamp))

    def due(self, rows: pa.Table, span: Span) -> Any:
        """For each of the rows, whose keys lie in `span`, whether it is due: Arrow's booleans."""
        least, greatest = self.range(span)
        reached: Any = pa.scalar(least, pa.int64())
        if least < greatest:
            keys: Any = rows.column(ROW_KEY).to_pylist()
            reached = pa.array([self.at(key) for key in keys], pa.int64())
        timestamps: Any = rows.column(COMMIT_TIMESTAMP)
        return pc.less_equal(timestamps, reached)


@dataclass(slots=True)
class _Segment:
    """Rows of one batch, whose keys lie in `span`, all of them live or none. `table` is None where
    they wait in the file, `length` bytes from `start` on."""

    span: Span
    live: bool
    least: Timestamp
    greatest: Timestamp
    schema: pa.Schema
    nbytes: int
    table: pa.Table | None
    start: int = 0
    length: int = 0

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return 0 if self.table is None else self.table.nbytes + SEGMENT_BYTES


class HeldRows:
    """The rows of one attempt of a feed. It does I/O and raises OSError: use it in a lane."""

    def __init__(self, memory_bytes: int | None = None) -> None:
        """Rows of more than `memory_bytes` wait in the file; None is `MEMORY_BYTES_MAX`."""
        self._memory_bytes = MEMORY_BYTES_MAX if memory_bytes is None else memory_bytes
        self._segments: list[_Segment] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def __bool__(self) -> bool:
        return bool(self._segments)

    def add(self, rows: pa.Table, span: Span = EVERYTHING, *, live: bool = False) -> None:
        """The keys of the rows lie in `span`. What is live has the column `ROW_KEY`."""
        bounds: Any = pc.min_max(rows.column(COMMIT_TIMESTAMP)).as_py()
        least, greatest = Timestamp(bounds["min"]), Timestamp(bounds["max"])
        segment = _Segment(span, live, least, greatest, rows.schema, rows.nbytes, rows)
        self._segments.append(segment)
        self._bytes += segment.size
        if self._bytes > self._memory_bytes:
            self._spill()

    @property
    def least(self) -> Timestamp | None:
        """The least timestamp of a row; None where there is none."""
        return min((segment.least for segment in self._segments), default=None)

    def part(self, upto: Timestamp, bytes_max: int) -> Timestamp:
        """A timestamp at or below `upto` up to which there are about `bytes_max` bytes of rows, or
        those of one batch."""
        size = 0
        for segment in sorted(self._segments, key=lambda segment: segment.greatest):
            size += segment.nbytes
            if size > bytes_max:
                return min(segment.greatest, upto)
        return upto

    def parts(self, cut: Cut, bytes_max: int) -> list[Timestamp]:
        """Ascending timestamps that cut what is due into parts of about `bytes_max` bytes, or of
        one batch. The last is above all of it."""
        stops: list[Timestamp] = []
        size, last = 0, ZERO
        due = self._due(cut)
        for segment in sorted(due, key=lambda segment: segment.greatest):
            if size > bytes_max and last < segment.greatest:
                stops.append(last)
                size = 0
            size += segment.nbytes
            last = segment.greatest
        return [*stops, LAST] if due else []

    def bounds(self, cut: Cut) -> tuple[Timestamp, Timestamp]:
        """Timestamps between which all rows lie that are due."""
        due = self._due(cut)
        return (
            min((each.least for each in due), default=ZERO),
            max((min(each.greatest, cut.range(each.span)[1]) for each in due), default=ZERO),
        )

    def due(self, cut: Cut) -> list[pa.Schema]:
        """The schemas of the rows that `take` would return, without repetitions."""
        found = [each.schema for each in self._due(cut)]
        return [schema for place, schema in enumerate(found) if schema not in found[:place]]

    def take(self, cut: Cut) -> Iterator[pa.Table]:
        """The rows that are due, batch by batch. They wait on until `drop` is told that they are
        committed."""
        return (rows for _, rows in self._take(cut))

    def take_once(self, cut: Cut) -> Iterator[pa.Table]:
        """The same, without live rows that came before."""
        repeated, seen = self._repeated(cut), set[Change]()
        for live, rows in self._take(cut):
            yield _unseen(rows, repeated, seen) if live else rows

    def _take(self, cut: Cut) -> Iterator[tuple[bool, pa.Table]]:
        """The rows that are due, and whether they are live."""
        for segment in self._due(cut):
            rows = self._rows(segment)
            if segment.greatest > cut.range(segment.span)[0]:
                rows = rows.filter(cut.due(rows, segment.span))
            yield segment.live, rows

    def _repeated(self, cut: Cut) -> Container[Change] | None:
        """The live changes that are due and came more than once; None where they are so few that
        each may be one."""
        if sum(each.nbytes for each in self._due(cut) if each.live) <= SEEN_BYTES_MAX:
            return None
        changes = (rows.select(_CHANGES.names) for live, rows in self._take(cut) if live)
        batches = (batch for rows in changes for batch in rows.to_batches())
        with tempfile.TemporaryDirectory(prefix="tailrace-") as folder:
            place = {"temp_directory": folder, "memory_limit": REPETITIONS_MEMORY}
            try:
                with duckdb.connect(config={**place, "threads": 1}) as connection:
                    reader = pa.RecordBatchReader.from_batches(_CHANGES, batches)
                    connection.register("live", reader)
                    connection.execute("SELECT * FROM live GROUP BY ALL HAVING count(*) > 1")
                    return set(connection.fetchall())
            except duckdb.Error as error:
                raise OSError(f"repetitions are not found: {error}") from error

    def drop(self, cut: Cut) -> None:
        """Lets go of the rows that are due."""
        segments, self._segments, self._bytes = self._segments, [], 0
        for segment in segments:
            least, greatest = cut.range(segment.span)
            if segment.least > greatest:
                self._segments.append(segment)
                self._bytes += segment.size
            elif segment.greatest > least:
                rows = self._rows(segment)
                rows = rows.filter(pc.invert(cut.due(rows, segment.span)))
                if rows.num_rows:
                    self.add(rows, _span(rows, segment.span), live=segment.live)
        if self._file is not None and all(each.table is not None for each in self._segments):
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _due(self, cut: Cut) -> list[_Segment]:
        """The segments in which rows may be due."""
        return [each for each in self._segments if each.least <= cut.range(each.span)[1]]

    def _rows(self, segment: _Segment) -> pa.Table:
        if segment.table is not None:
            return segment.table
        assert self._file is not None, segment
        self._file.seek(segment.start)
        return pa.ipc.open_stream(self._file.read(segment.length)).read_all()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        kept = self._segments
        self._segments, self._bytes = [], 0
        alike = groupby(kept, lambda each: (each.table is None, each.live, each.schema))
        for _, together in alike:
            group = list(together)
            if group[0].table is None:
                self._segments += group
            else:
                self._segments.append(self._written(group, self._file))

    def _written(self, group: Sequence[_Segment], file: IO[bytes]) -> _Segment:
        """Writes several segments in memory as one in the file."""
        rows = pa.concat_tables(each.table for each in group if each.table is not None)
        return _Segment(
            span=Span(min(each.span.start for each in group), max(each.span.end for each in group)),
            live=group[0].live,
            least=min(each.least for each in group),
            greatest=max(each.greatest for each in group),
            schema=rows.schema,
            nbytes=rows.nbytes,
            table=None,
            start=file.seek(0, 2),
            length=file.write(_as_stream(rows.combine_chunks())),
        )


class HeldMessages:
    """Encoded rows that wait, with columns TOPIC, KEY, VALUE, ROW_KEY, COMMIT_TIMESTAMP and APART.
    I/O is done in `lane`: its failures are SinkErrors.

    Rows are live that were committed while the feed watched. A row is APART where it is of no
    transaction above what was reached: of an initial scan, or shown again.
    """

    def __init__(self, lane: OffloadLane, memory_bytes: int | None = None) -> None:
        """`memory_bytes` as of `HeldRows`."""
        self._lane = lane
        self._rows = HeldRows(memory_bytes)

    def __bool__(self) -> bool:
        return bool(self._rows)

    async def add(self, batch: ChangeBatch, encoded: EncodedBatch, reached: Cut) -> None:
        """`reached` is what was committed: live rows up to there, which a range feed that began
        anew tells again, are left out."""
        count, live = len(batch), batch.kind is ChangeKind.LIVE
        rows = pa.table(
            {
                TOPIC: pa.repeat(encoded.topic, count),
                KEY: pa.array(encoded.keys, pa.binary()),
                VALUE: pa.array(encoded.values, pa.binary()),
                ROW_KEY: pa.array(batch.keys, pa.binary()),
                COMMIT_TIMESTAMP: pa.array(batch.timestamps, pa.int64()),
                APART: pa.repeat(batch.kind is ChangeKind.INITIAL_SCAN, count),
            }
        )
        span = Span.of_keys(batch.keys)
        if min(batch.timestamps) <= reached.range(span)[1]:
            again = reached.due(rows, span)
            if live:
                rows = rows.filter(pc.invert(again))
            else:
                apart = pc.or_(rows.column(APART), again)
                rows = rows.set_column(rows.schema.get_field_index(APART), APART, apart)
        if rows.num_rows:
            await self._run(partial(self._rows.add, rows, span, live=live))

    def parts(self, cut: Cut, bytes_max: int) -> list[Timestamp]:
        return self._rows.parts(cut, bytes_max)

    def bounds(self, cut: Cut) -> tuple[Timestamp, Timestamp]:
        return self._rows.bounds(cut)

    def take(self, cut: Cut) -> AsyncIterator[pa.Table]:
        """See `HeldRows.take`."""
        return _Taken(self._run, self._rows.take(cut))

    def take_once(self, cut: Cut) -> AsyncIterator[pa.Table]:
        """See `HeldRows.take_once`."""
        return _Taken(self._run, self._rows.take_once(cut))

    async def in_order(self, cut: Cut) -> pa.Table:
        """All rows that are due, in the order of commits; of one timestamp, what is apart goes
        first."""
        return await self._run(lambda: pa.concat_tables(self._rows.take(cut)).sort_by(_IN_ORDER))

    async def drop(self, cut: Cut) -> None:
        await self._run(partial(self._rows.drop, cut))

    async def close(self) -> None:
        await self._lane.run(self._rows.close)

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._lane.run(call)
        except OSError as error:
            raise SinkError(f"messages that wait cannot be kept: {error}") from error


class _Taken:
    """Rows that are taken in a lane. No generator: one that is left behind is ended by the loop,
    whenever that is."""

    def __init__(
        self,
        run: Callable[[Callable[[], pa.Table | None]], Awaitable[pa.Table | None]],
        taken: Iterator[pa.Table],
    ) -> None:
        self._run = run
        self._taken = taken

    def __aiter__(self) -> _Taken:
        return self

    async def __anext__(self) -> pa.Table:
        rows = await self._run(partial(next, self._taken, None))
        if rows is None:
            raise StopAsyncIteration
        return rows


def _unseen(rows: pa.Table, repeated: Container[Change] | None, seen: set[Change]) -> pa.Table:
    """The rows whose changes were not `seen`: those that may be `repeated` are, from now on."""
    if repeated is not None and not repeated:
        return rows
    changes = zip(*(rows.column(name).to_pylist() for name in _CHANGES.names), strict=True)
    new = []
    for change in changes:
        new.append(change not in seen)
        if repeated is None or change in repeated:
            seen.add(change)
    return rows if all(new) else rows.filter(pa.array(new, pa.bool_()))


def _span(rows: pa.Table, within: Span) -> Span:
    """The least span of the rows' keys, where they tell them."""
    if ROW_KEY not in rows.column_names:
        return within
    keys: Any = rows.column(ROW_KEY).to_pylist()
    return Span.of_keys(keys)


def _as_stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
