"""Answers to schema changes about a table's rows: values of new columns, and whether checks
hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.descriptors.elements import CheckConstraint
from ....catalog.store.catalog import Catalog
from ....catalog.store.descriptor_store import DescriptorStore
from ....catalog.values.column_types import Datum
from ....kvlayer.access import StoreAccess
from ....kvlayer.process.background import give_way
from ...analyze.calls.row_calls import ValueNeeded
from ...analyze.default_expressions import StoreGenerators, draw_defaults
from ...analyze.scalars import Bindings
from ...lower.row_expressions import compile_check, compile_expression
from ...results.results import QueryEvaluator
from ..write.row_rules import evaluate_all, first_violation, rows_of
from ..write.sequences import StoredSequences, with_draws_of

DRAWN_ROWS = 100
"""Defaults that a schema change draws before others get their turns: some 0.3 ms of UUIDs."""


class AnalyticRows:
    """Evaluates the expressions of schema changes: the catalog's `RowEvaluator`."""

    def __init__(
        self, store: StoreAccess, descriptors: DescriptorStore, analytics: QueryEvaluator
    ) -> None:
        self._store = store
        self._descriptors = descriptors
        self._analytics = analytics
        self._generators = StoreGenerators(store)

    async def draw(
        self, table: TableDescriptor, columns: Sequence[Column], count: int
    ) -> Sequence[Sequence[Datum]]:
        bindings = await self._bindings()
        database = await self._database(table)
        sequences = StoredSequences(self._store, Catalog(self._descriptors), database)
        return [
            await with_draws_of(sequences, bindings, partial(_drawn, column, count))
            for column in columns
        ]

    async def _database(self, table: TableDescriptor) -> str:
        """The name of the table's database, in which its defaults find their sequences."""
        reader = self._store.snapshot(await self._store.now())
        database = await self._descriptors.read(reader, table.database_id)
        assert database is not None, table
        return database.name

    async def compute(
        self, table: TableDescriptor, rows: pa.RecordBatch, columns: Sequence[Column]
    ) -> Sequence[Sequence[Datum]]:
        expressions = [
            compile_expression(table, column.computed, column.type)
            for column in columns
            if column.computed is not None
        ]
        assert len(expressions) == len(columns), columns
        bindings = await self._bindings()
        return await evaluate_all(table, expressions, rows_of(rows), bindings)

    async def violates(
        self, table: TableDescriptor, rows: pa.RecordBatch, check: CheckConstraint
    ) -> int | None:
        compiled = compile_check(table.writable, check)
        bindings = await self._bindings()
        return await first_violation(table.writable, compiled, rows_of(rows), bindings)

    async def _bindings(self) -> Bindings:
        now = await self._store.now()
        return Bindings((), now, generators=self._generators, analytics=self._analytics)


async def _drawn(column: Column, count: int, bindings: Bindings) -> list[Datum]:
    """The default of a column for so many rows, drawn anew for each."""
    values: list[Datum] = []
    while len(values) < count:
        try:
            (drawn,) = draw_defaults([column], min(DRAWN_ROWS, count - len(values)), bindings)
        except ValueNeeded as needed:
            needed.wanted = count - len(values)
            raise
        values += drawn
        await give_way()
    return values
