"""SHOW CHANGEFEED LATENCY and SHOW CHANGEFEED LAG."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.key_borders import pretty_key
from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import TypeKind
from ....kvlayer.clock import format_timestamp
from ....kvlayer.span import Span
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.services import Services
from .feeds import check_reads_feed

FLOAT8 = ColumnType(TypeKind.FLOAT8)

_LATENCY_COLUMNS = typed_columns(
    "stage commits:i p50_ms:f p95_ms:f p99_ms:f max_ms:f waiting:i waited_ms:f table_name span "
    "waits_for"
)
_LAG_COLUMNS = typed_columns("table_name state span resolved lag_seconds:f catch_up_seconds:f")


async def show_feed_latency(services: Services, job_id: int, user: str) -> Result:
    """A row for each stage. Raises SQLError 42704, 42501, and 0A000 where another node runs it."""
    await check_reads_feed(services, user, job_id)
    tables = _Tables(services)
    rows: list[Row] = []
    for stage in await services.jobs.latency(job_id):
        measured, holdup = stage.measured, stage.holdup
        times = [None] * 4 if measured is None else [
            measured.p50, measured.p95, measured.p99, measured.max
        ]  # fmt: skip
        waiting: Row = (None,) * 5
        if holdup is not None:
            table = await tables.find(holdup.table_id)
            waiting = (
                holdup.batches,
                stage.waited_ms,
                None if table is None else table.name,
                _shown(holdup.span, table),
                holdup.why,
            )
        rows.append((stage.name, 0 if measured is None else measured.count, *times, *waiting))
    return listing("SHOW CHANGEFEED LATENCY", _LATENCY_COLUMNS, rows)


async def show_feed_lag(services: Services, job_id: int, user: str) -> Result:
    """A row for each span of each table. Raises SQLError 42704 and 42501."""
    await check_reads_feed(services, user, job_id)
    tables = _Tables(services)
    rows: list[Row] = [
        (
            found.table_name,
            found.state,
            _shown(found.span, await tables.find(found.table_id)),
            format_timestamp(found.resolved) if found.resolved else None,
            found.seconds,
            found.catch_up_seconds,
        )
        for found in await services.jobs.lag(job_id)
    ]
    return listing("SHOW CHANGEFEED LAG", _LAG_COLUMNS, rows)


class _Tables:
    """Descriptors as they are now, each read once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._found: dict[int, TableDescriptor | None] = {}

    async def find(self, table_id: int) -> TableDescriptor | None:
        if table_id not in self._found:
            at = await self._services.store.now()
            found = await self._services.catalog.descriptors.read_at(table_id, at)
            self._found[table_id] = found if isinstance(found, TableDescriptor) else None
        return self._found[table_id]


def _shown(span: Span, table: TableDescriptor | None) -> str:
    return f"[{pretty_key(span.start, table)}, {pretty_key(span.end, table)})"
