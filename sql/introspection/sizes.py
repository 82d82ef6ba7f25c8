"""`tailrace_internal.sizes` and `database_sizes`: how much is stored of what, about.

The bytes are those of all versions that garbage collection has left, before the engine compresses
them. They are NULL where the store is in another process, and where it does not know.

    pg_relation_size('orders')          the rows of a table, or the entries of an index
    pg_total_relation_size('orders')    with its indexes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from ...catalog.descriptors.elements import ElementState
from ...kvlayer.keys import index_span
from ...kvlayer.span import Span
from ..analyze.calls.oids import index_oid
from ..results.results import Row
from ..runtime.introspection_context import IntrospectionContext
from .described import described_relations, described_tables

_EMPTY = 0
"""The size of relations without stored rows: views."""


@runtime_checkable
class SizedStore(Protocol):
    """A store whose ranges are in this process."""

    async def span_bytes(self, span: Span) -> int | None:
        """Returns the bytes of a span; None where the node does not know them."""
        ...


async def size_rows(context: IntrospectionContext) -> Sequence[Row]:
    """A row for each table and view, with all its indexes in the total, and for each index."""
    rows: list[Row] = []
    for found in await described_relations(context):
        table = found.table
        if table.view is not None:
            rows.append((table.id, _EMPTY, _EMPTY))
            continue
        main = await _bytes(context, index_span(table.id, table.primary_index.id))
        of_indexes = [
            (index, await _bytes(context, index_span(table.id, index.id)))
            for index in table.indexes
            if index.state is ElementState.PUBLIC
        ]
        rows.append((table.id, main, _total([main, *(size for _, size in of_indexes)])))
        rows.append((index_oid(table.id, table.primary_index.id), main, main))
        rows += [(index_oid(table.id, index.id), size, size) for index, size in of_indexes]
    return rows


async def database_size_rows(context: IntrospectionContext) -> Sequence[Row]:
    rows: list[Row] = []
    for name, id in await context.services.catalog.descriptors.children(context.reader, 0, 0):
        within = replace(context, database=name)
        sizes = [
            await _bytes(context, index_span(found.table.id, index.id))
            for found in await described_tables(within)
            for index in (found.table.primary_index, *found.table.indexes)
        ]
        rows.append((id, name, _total(sizes)))
    return rows


async def _bytes(context: IntrospectionContext, span: Span) -> int | None:
    store = context.services.store
    return await store.span_bytes(span) if isinstance(store, SizedStore) else None


def _total(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
