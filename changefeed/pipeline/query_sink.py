"""A query before a sink: the sink is shown what the query says of each change, in order.

    emitted   [7 inserted, 8 inserted]  ADD COLUMN  [7 updated]      under v1, under v2
    shown     [7]                       …           [7]              by the query under v1, v2

Changes wait here until a flush computes them, batch after batch, and hands them on: a query takes a
thread, and what is emitted may not wait. A change that does not match is no message; in a mirror,
which holds rows and no messages, its row goes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.arrow_columns import column_datums
from ...catalog.values.column_types import Datum
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp
from ...schemafeed.table_events import TableEvent
from ..contract.changes import ChangeBatch, ChangeKind
from ..contract.options import ChangefeedOptions
from ..contract.queries import CompiledQuery, FeedQuery, QueryAnswer, QueryCompiler
from ..sinks.protocol import Sink, SinkProgress, SinkRefused, SinkStand

COMPILED_MAX = 16
"""Versions of a table for which a query stays compiled: late rows are under the last few."""


class QueryFailed(SinkRefused):
    """A feed's query cannot be computed, for the reason that `cause` tells."""

    def __init__(self, table: TableDescriptor, cause: SQLError) -> None:
        super().__init__(
            f'the query of the changefeed cannot be computed for table "{table.name}": '
            f"{cause.message}"
        )
        self.cause = cause


def pipeline_options(
    options: ChangefeedOptions, query: FeedQuery | None, *, holds_rows: bool
) -> ChangefeedOptions:
    """The options by which a feed's changes are read: of a query, with all that it asks of them."""
    if query is None:
        return options
    compares = query.passes_over_same and not holds_rows
    return replace(
        options,
        diff=options.diff or query.previous or compares,
        mvcc_timestamp=options.mvcc_timestamp or query.versions,
    )


class QuerySink:
    """Stands before `sink` for one attempt of a feed with a query."""

    def __init__(
        self,
        sink: Sink,
        compiler: QueryCompiler,
        query: FeedQuery,
        *,
        created_at: Timestamp,
        tells_previous: bool,
        holds_rows: bool,
        columnar: bool,
    ) -> None:
        """`tells_previous`: event_op() tells inserts from updates. `holds_rows`: the sink holds the
        rows that match. `columnar`: it takes Arrow."""
        self._sink = sink
        self._compiler = compiler
        self._query = query
        self._created_at = created_at
        self._tells_previous = tells_previous
        self._holds_rows = holds_rows
        self._columnar = columnar
        self._waiting: list[ChangeBatch | TableEvent] = []
        self._compiled: OrderedDict[tuple[int, int], CompiledQuery] = OrderedDict()

    async def stand(self) -> SinkStand | None:
        return await self._sink.stand()

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        self._waiting.clear()
        await self._sink.open([(await self._compile(table, table)).result for table in tables])

    def emit(self, batch: ChangeBatch) -> None:
        self._waiting.append(batch)

    def change_schema(self, event: TableEvent) -> None:
        self._waiting.append(event)

    async def flush(self, progress: SinkProgress | None) -> None:
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            if isinstance(item, TableEvent):
                self._sink.change_schema(await self._shown_event(item))
            else:
                await self._show(item)
        await self._sink.flush(progress)

    async def emit_resolved(self, resolved: Timestamp) -> None:
        await self._sink.emit_resolved(resolved)

    async def close(self) -> None:
        await self._sink.close()

    async def _shown_event(self, event: TableEvent) -> TableEvent:
        """The event, as one of the result."""
        before = await self._compile(event.before, event.before)
        after = await self._compile(event.after, event.after)
        return TableEvent(before=before.result, after=after.result, kinds=event.kinds)

    async def _show(self, batch: ChangeBatch) -> None:
        compiled = await self._compile(batch.descriptor, batch.before or batch.descriptor)
        try:
            answer = await compiled.evaluate(
                batch, created_at=self._created_at, knows_previous=self._tells_previous
            )
        except SQLError as error:
            raise QueryFailed(batch.descriptor, error) from error
        gone = frozenset(batch.gone)
        if self._holds_rows:
            shown = _as_state(batch, answer, gone, compiled.result)
        else:
            shown = _as_messages(batch, answer, gone, self._same(batch), compiled.result)
        if len(shown):
            if not self._columnar:
                shown = replace(shown, rows=list(shown.iterate_rows()), columns=None, deleted=())
            self._sink.emit(shown)

    async def _compile(self, table: TableDescriptor, before: TableDescriptor) -> CompiledQuery:
        """Raises QueryFailed where there is no such query under that version."""
        key = (table.version, before.version)
        found = self._compiled.get(key)
        if found is None:
            try:
                found = await self._compiler.compile(self._query.text, table, before)
            except SQLError as error:
                raise QueryFailed(table, error) from error
            self._compiled[key] = found
            if len(self._compiled) > COMPILED_MAX:
                self._compiled.popitem(last=False)
        return found

    def _same(self, batch: ChangeBatch) -> frozenset[int]:
        """The places of updates in which the columns that the query reads stay the same."""
        previous = batch.previous
        if (
            previous is None
            or not self._query.passes_over_same
            or batch.kind is not ChangeKind.LIVE
        ):
            return frozenset()
        places = [
            place
            for place, column in enumerate(batch.descriptor.visible_columns)
            if column.id in self._query.columns
        ]
        rows = zip(*(_datums(batch, place) for place in places), strict=True) if places else None
        gone = frozenset(batch.gone)
        same: list[int] = []
        for index, before in enumerate(previous):
            if index in gone:
                continue
            row = () if rows is None else next(rows)
            if before is not None and row == tuple([before[place] for place in places]):
                same.append(index)
        return frozenset(same)


def _datums(batch: ChangeBatch, place: int) -> list[Datum]:
    """A column of the rows that are there."""
    if batch.rows is not None:
        return [row[place] for row in batch.rows if row is not None]
    assert batch.columns is not None, batch
    type = batch.descriptor.visible_columns[place].type
    return column_datums(type, batch.columns.column(place))


def _as_messages(
    batch: ChangeBatch,
    answer: QueryAnswer,
    gone: frozenset[int],
    same: frozenset[int],
    result: TableDescriptor,
) -> ChangeBatch:
    """The changes that match, each with what the query shows of it, and the whole row that it
    replaced."""
    kept = [index for index, place in enumerate(answer.places) if place not in same]
    places = [answer.places[index] for index in kept]
    rows = _taken(answer.rows, kept)
    deleted = [index for index, place in enumerate(places) if place in gone]
    live = rows
    if deleted:
        there = [index for index, place in enumerate(places) if place not in gone]
        live = _taken(rows, there)
    found = _picked(batch, places, result, live, deleted, shown=rows if deleted else None)
    if batch.previous is None:
        return found
    previous = [batch.previous[place] for place in places]
    return replace(found, previous=previous, before=batch.before or batch.descriptor)


def _as_state(
    batch: ChangeBatch, answer: QueryAnswer, gone: frozenset[int], result: TableDescriptor
) -> ChangeBatch:
    """The rows that match, and a deletion for every other change; of a scan's rows none, for the
    sink has nothing yet."""
    kept = [index for index, place in enumerate(answer.places) if place not in gone]
    matching = frozenset(answer.places[index] for index in kept)
    rows = _taken(answer.rows, kept)
    if batch.kind is ChangeKind.INITIAL_SCAN:
        return _picked(batch, sorted(matching), result, rows, ())
    deleted = [place for place in range(len(batch)) if place not in matching]
    return _picked(batch, range(len(batch)), result, rows, deleted)


def _taken(rows: pa.RecordBatch, places: Sequence[int]) -> pa.RecordBatch:
    if len(places) == rows.num_rows:
        return rows
    return rows.take(pa.array(places, pa.int64()))


def _picked(
    batch: ChangeBatch,
    places: Sequence[int],
    result: TableDescriptor,
    rows: pa.RecordBatch,
    deleted: Sequence[int],
    *,
    shown: pa.RecordBatch | None = None,
) -> ChangeBatch:
    versions = batch.versions
    return ChangeBatch(
        descriptor=result,
        kind=batch.kind,
        keys=[batch.keys[place] for place in places],
        timestamps=[batch.timestamps[place] for place in places],
        versions=None if versions is None else [versions[place] for place in places],
        columns=rows,
        deleted=deleted,
        shown=shown,
    )
