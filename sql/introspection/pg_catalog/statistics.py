"""The statistics views of pg_catalog: what monitoring asks for, and NULL for what nobody counts.

A store counts no scans and no blocks of a table. How many sessions a database has is known, and
when these tables began to count is never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...analyze.calls.oids import index_oid
from ...results.results import Row
from ...runtime.introspection_context import IntrospectionContext
from ..described import described_tables
from ..virtual_table import RowSource


async def _table_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [
        (found.table.id, found.schema, found.table.name)
        for found in await described_tables(context)
    ]


async def _index_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [
        (
            found.table.id, index_oid(found.table.id, index.id), found.schema, found.table.name,
            index.name,
        )
        for found in await described_tables(context)
        for index in found.indexes
    ]  # fmt: skip


async def _database_rows(context: IntrospectionContext) -> Sequence[Row]:
    sessions = Counter(session.database for session in context.services.sessions)
    databases = await context.services.catalog.descriptors.children(context.reader, 0, 0)
    return [(id, name, sessions[name]) for name, id in databases]


async def _security_rows(context: IntrospectionContext) -> Sequence[Row]:
    """pg_stat_gssapi: it is declined, always."""
    return [(s.activity.process_id, False, None, False) for s in context.services.sessions]


async def _counters(context: IntrospectionContext) -> Sequence[Row]:
    """Counters that nobody keeps, but for the first: of checkpoints by the clock, and of archived
    logs, there are none."""
    return [(0,)]


_KINDS, _WHICH = ("pg_stat", "pg_statio"), ("all", "user")
STATISTICS: dict[str, RowSource] = {
    **{f"{kind}_{which}_tables": _table_rows for kind in _KINDS for which in _WHICH},
    **{f"{kind}_{which}_indexes": _index_rows for kind in _KINDS for which in _WHICH},
    "pg_stat_database": _database_rows,
    "pg_stat_bgwriter": _counters,
    "pg_stat_archiver": _counters,
    "pg_stat_gssapi": _security_rows,
}
"""The source of the rows of each table; the others are empty."""
