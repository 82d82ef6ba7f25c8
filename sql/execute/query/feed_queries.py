"""Queries of changefeeds, compiled for a version of their table and computed by DuckDB.

A batch of changes becomes a given table (`analyze.feed_queries`), of which DuckDB is handed the
columns that the query reads. It computes in a thread: what the loop does is to make Arrow of rows,
of many in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.rows.arrow_conform import broad_schema
from ....catalog.rows.row_codec import codec_for
from ....catalog.values.arrow_columns import AnyArray, column_array
from ....catalog.values.column_types import ColumnType, Datum
from ....catalog.values.physical import physical_of
from ....catalog.values.session_zone import SessionZone, follow, forget
from ....changefeed.contract.changes import ChangeBatch
from ....changefeed.contract.queries import QueryAnswer
from ....kvlayer.clock import Timestamp, format_timestamp, unix_us
from ....kvlayer.process.fibre import end_slice, in_slices
from ...analyze import feed_queries
from ...analyze.given_tables import ROW_NUMBER
from ...analyze.scalars import Bindings
from ...lower.transpile import AnalyticSelect, transpile
from ...parse.statements.feeds import parse_feed_select
from ...results.results import QueryEvaluator
from ...runtime.analytic_lanes import ask_as
from ...runtime.plan_cache import planned
from ...syntax.changefeed_statements import FeedSelect
from .evaluator_errors import asked_of_duckdb
from .result_shape import columns_of

CHANGES_SMALL = 256
"""Changes that are converted to Arrow in one step of the loop."""

COMPUTED_IDS = 1_000_000
"""Ids of columns that a query computes begin here: beyond those that a table's columns have."""


class FeedQueries:
    """Implements `changefeed.contract.queries.QueryCompiler`."""

    def __init__(self, analytics: QueryEvaluator) -> None:
        self._analytics = analytics

    async def compile(
        self, text: str, table: TableDescriptor, before: TableDescriptor
    ) -> CompiledFeedQuery:
        return await compile_feed_query(
            await in_slices(lambda: parse_feed_select(text)), table, before, self._analytics
        )


async def compile_feed_query(
    select: FeedSelect, table: TableDescriptor, before: TableDescriptor, analytics: QueryEvaluator
) -> CompiledFeedQuery:
    """Raises SQLError."""
    with _nobodys_session():
        meant = await in_slices(lambda: feed_queries.meant_query(select, table, before))
        analytic = await in_slices(lambda: transpile(meant.tree, meant.relations))
        columns = await columns_of(analytic, analytics, [table])
    result = _result(table, meant, [column.type for column in columns])
    return CompiledFeedQuery(table, before, meant, analytic, result, analytics)


def _result(
    table: TableDescriptor, meant: feed_queries.MeantQuery, types: Sequence[ColumnType]
) -> TableDescriptor:
    columns: list[Column] = []
    taken: set[int] = set()
    for place, (output, type) in enumerate(zip(meant.outputs, types, strict=False)):
        source = output.source
        if source is not None and source.id not in taken:
            columns.append(_shown(source, output.name))
            taken.add(source.id)
        else:
            computed = place - sum(1 for column in columns if column.id < COMPUTED_IDS)
            columns.append(Column(id=COMPUTED_IDS + computed, name=output.name, type=type))
    names = {column.name for column in columns}
    for source in meant.hidden:
        name = source.name
        while name in names:
            name = f"{name}~"
        columns.append(_shown(source, name, hidden=True))
        names.add(name)
    return TableDescriptor(
        id=table.id,
        name=table.name,
        database_id=table.database_id,
        schema_id=table.schema_id,
        columns=tuple(columns),
        primary_key=table.primary_key,
        next_column_id=COMPUTED_IDS + len(columns),
        version=table.version,
        modification_time=table.modification_time,
        primary_index_id=table.primary_index_id,
        next_index_id=table.next_index_id,
        locked=table.locked,
    )


def _shown(source: Column, name: str, *, hidden: bool = False) -> Column:
    """Returns a table's column as a column of the result."""
    return Column(
        id=source.id,
        name=name,
        type=source.type,
        nullable=source.nullable,
        missing=source.missing,
        hidden=hidden,
    )


@dataclass(frozen=True, slots=True)
class CompiledFeedQuery:
    """Implements `changefeed.contract.queries.CompiledQuery`."""

    table: TableDescriptor
    before: TableDescriptor
    meant: feed_queries.MeantQuery
    analytic: AnalyticSelect
    result: TableDescriptor
    analytics: QueryEvaluator

    async def evaluate(
        self, changes: ChangeBatch, *, created_at: Timestamp, knows_previous: bool
    ) -> QueryAnswer:
        def given_tables() -> dict[str, pa.Table]:
            given = _Given(self, changes, created_at, knows_previous)
            return {
                scan.registered: given.table(scan.places, scan.arrow_schema)
                for scan in self.analytic.scans
            }

        with _nobodys_session():
            tables = await planned(given_tables, lengthy=len(changes) > CHANGES_SMALL)
            bindings = Bindings((), max(changes.timestamps))
            with asked_of_duckdb(self.analytic, [self.table]):
                answer = await self.analytics.run(self.analytic.over(tables, bindings))
        columns = self.result.visible_columns
        arrays = [
            _as(column.type, found)
            for column, found in zip(columns, answer.table.columns, strict=False)
        ]
        names = [column.name for column in columns]
        places: list[Any] = answer.table.column(len(columns)).to_pylist()
        return QueryAnswer(places=places, rows=pa.RecordBatch.from_arrays(arrays, names=names))


def _as(type: ColumnType, array: Any) -> AnyArray:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else column_array(type, [])
    found: AnyArray = array if array.type == type.arrow_type else array.cast(type.arrow_type)
    return found


class _Given:
    """Changes as the table that a query reads. Rows that are there come before deletions where the
    batch has columns; the number of a row is its place in the batch."""

    def __init__(
        self,
        query: CompiledFeedQuery,
        changes: ChangeBatch,
        created_at: Timestamp,
        knows_previous: bool,
    ) -> None:
        self._query = query
        self._changes = changes
        self._created_at = created_at
        self._knows_previous = knows_previous
        self._deleted = changes.gone
        self._order: Sequence[int] = range(len(changes))
        if changes.rows is None:
            gone = frozenset(self._deleted)
            live = [place for place in range(len(changes)) if place not in gone]
            self._order = [*live, *self._deleted]

    def table(self, places: Sequence[int], schema: pa.Schema) -> pa.Table:
        """The columns at these places of the given table."""
        given = self._query.meant.changes.visible_columns
        width = len(self._query.table.visible_columns)
        arrays: list[Any] = []
        for place in places:
            end_slice()
            name = given[place].name
            if name == ROW_NUMBER:
                arrays.append(pa.array(self._order, pa.int64()))
            elif place <= width:
                arrays.append(self._column(place - 1))
            elif name.startswith(feed_queries.BEFORE):
                arrays.append(self._previous(place - 1 - width))
            else:
                arrays.append(self._facts()[name]())
        return pa.Table.from_arrays(arrays, schema=schema)

    def _column(self, place: int) -> Any:
        """A column of the rows, with the values of keys in deletions."""
        changes, column = self._changes, self._query.table.visible_columns[place]
        if changes.rows is not None:
            keys = dict(zip(self._deleted, self._keys(column), strict=True))
            values = [
                keys[index] if row is None else row[place] for index, row in enumerate(changes.rows)
            ]
            return _array(column.type, values)
        assert changes.columns is not None, changes
        stored = pa.Table.from_batches([changes.columns]).select([place])
        found = stored.cast(broad_schema(self._query.table, [place])).column(0)
        if not self._deleted:
            return found
        return pa.chunked_array([*found.chunks, _array(column.type, self._keys(column))])

    def _keys(self, column: Column) -> list[Datum]:
        """The values of a column in the keys of deletions, in their order."""
        key = self._query.table.primary_key
        if column.id not in key:
            return [None] * len(self._deleted)
        decode_key, place = codec_for(self._query.table).decode_key, key.index(column.id)
        return [decode_key(self._changes.keys[index])[place] for index in self._deleted]

    def _previous(self, place: int) -> AnyArray:
        previous = self._changes.previous
        column = self._query.before.visible_columns[place]
        if previous is None:
            return _array(column.type, [None] * len(self._order))
        rows = [previous[index] for index in self._order]
        return _array(column.type, [None if row is None else row[place] for row in rows])

    def _facts(self) -> dict[str, Callable[[], AnyArray]]:
        changes, count = self._changes, len(self._order)
        modified = self._query.table.modification_time
        versions = changes.timestamps if changes.versions is None else changes.versions
        return {
            feed_queries.OP: lambda: pa.array(self._ops(), pa.string()),
            feed_queries.REPLACES: lambda: pa.array(self._replaces(), pa.bool_()),
            feed_queries.MVCC: lambda: self._timestamps(versions),
            feed_queries.SCHEMA: lambda: self._timestamps([modified] * len(changes)),
            feed_queries.CREATED: lambda: self._timestamps([self._created_at] * count),
            feed_queries.NOW: lambda: pa.array(
                [unix_us(versions[place]) for place in self._order], pa.timestamp("us", "UTC")
            ),
        }

    def _timestamps(self, timestamps: Sequence[Timestamp]) -> AnyArray:
        type = next(
            each.type
            for each in self._query.meant.changes.visible_columns
            if each.name == feed_queries.MVCC
        )
        return column_array(type, [format_timestamp(timestamps[place]) for place in self._order])

    def _replaces(self) -> list[bool]:
        previous = self._changes.previous
        return [previous is not None and previous[place] is not None for place in self._order]

    def _ops(self) -> list[str]:
        gone = frozenset(self._deleted)
        if not self._knows_previous:
            return ["delete" if place in gone else "upsert" for place in self._order]
        return [
            "delete" if place in gone else "update" if replaces else "insert"
            for place, replaces in zip(self._order, self._replaces(), strict=True)
        ]


def _array(type: ColumnType, values: Sequence[Datum]) -> AnyArray:
    return column_array(type.broad, [physical_of(type, value) for value in values])


@contextmanager
def _nobodys_session() -> Iterator[None]:
    """A context in which values are computed in UTC, for the node itself."""
    zone, who = follow(SessionZone()), ask_as(None)
    try:
        yield
    finally:
        ask_as(who)
        forget(zone)
