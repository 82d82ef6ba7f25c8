"""EXPLAIN and EXPLAIN ANALYZE: which engine does what, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.txn import Transaction
from ..access.key_access import KeyAccess
from ..analyze.virtual_ids import is_virtual
from ..lower.analytic_select import TableScan
from ..plan.plans import (
    DeletePlan,
    InsertPlan,
    Plan,
    SelectPlan,
    UpdatePlan,
    WithPlan,
    engine_of,
)
from ..results.results import Result, Row, listing
from ..results.table_reads import Images, Source, TableRead, Trace
from ..runtime.services import Services
from ..runtime.transactions import OpenTransaction
from .run import Execution, explain, run_planned


async def run_explain(
    services: Services,
    execution: Execution,
    opened: OpenTransaction | None,
    reader: Transaction,
    *,
    analyze: bool,
) -> Result:
    """EXPLAIN of a statement, which with `analyze` is carried out: in the open transaction, or by
    itself. `reader` sees the tables that the statement will."""
    plan = await explain(services, execution.statement, execution.database, reader, execution.user)
    if not analyze:
        return explained(plan, services.images)
    trace = Trace(services.store.clock.wall)
    began = trace.begin()
    result = await run_planned(services, replace(execution, trace=trace), opened)
    return analyzed(plan, trace, result, trace.since(began))


def explained(plan: Plan, images: Images | None) -> Result:
    """The plan as it would be carried out now; that of a WITH that writes, part by part."""
    if isinstance(plan, WithPlan):
        return _result([row for part in plan.parts for row in _part_rows(part, images)])
    return _result(_plan_rows(plan, images))


def _part_rows(
    part: SelectPlan | InsertPlan | UpdatePlan | DeletePlan, images: Images | None
) -> list[Row]:
    match part:
        case SelectPlan():
            told = "SELECT"
        case InsertPlan(descriptor=table):
            told = f"INSERT INTO {table.name}"
        case UpdatePlan():
            told = f"UPDATE {part.descriptor.name}"
        case DeletePlan():
            told = f"DELETE FROM {part.descriptor.name}"
    return [("part", told), *_plan_rows(part, images, only_read=True)]


def _plan_rows(plan: Plan, images: Images | None, *, only_read: bool = False) -> list[Row]:
    """Returns the engine and the plan's tables; with `only_read` the tables that it reads."""
    rows: list[Row] = [("engine", engine_of(plan).value)]
    scans = {scan.descriptor.id: scan for scan in _scans(plan)}
    indexes = {access.descriptor.id: access.index.name for access in _accesses(plan)}
    for table in plan.relations:
        if only_read and table.id not in scans and table.id not in indexes:
            continue
        rows.append(("table", table.name))
        scan = scans.get(table.id)
        if scan is not None:
            rows.append(("read", _source(scan, images).value))
        if table.id in indexes:
            rows.append(("index", indexes[table.id]))
    return rows


def analyzed(plan: Plan, trace: Trace, result: Result, milliseconds: float) -> Result:
    """Returns EXPLAIN ANALYZE's rows for a statement that has run: reads in their order, then
    DuckDB's time, counts and the total."""
    rows: list[Row] = [("engine", _engine(plan, trace))]
    for read in trace.reads:
        rows += [("table", read.table), ("read", _told(read))]
    if not trace.reads:
        rows += [("table", table.name) for table in plan.relations]
    if trace.duckdb_milliseconds is not None:
        rows.append(("duckdb", f"{trace.duckdb_milliseconds:.3f} ms"))
    what = "rows" if result.returns_rows or isinstance(plan, SelectPlan) else "rows written"
    rows += [(what, str(result.row_count)), ("total", f"{milliseconds:.3f} ms")]
    return _result(rows)


def _result(rows: list[Row]) -> Result:
    return listing("EXPLAIN", "property value", rows)


def _engine(plan: Plan, trace: Trace) -> str:
    """A key range that turned out to be long was left to DuckDB."""
    planned = engine_of(plan).value
    analytic = trace.duckdb_milliseconds is not None and not planned.startswith("duckdb")
    return f"{planned}, then duckdb" if analytic else planned


def _told(read: TableRead) -> str:
    told = f"{read.source.value}: {read.rows} rows, {read.milliseconds:.3f} ms"
    return f"{told}, {read.changed} changed" if read.source is Source.CACHE else told


def _source(scan: TableScan, images: Images | None) -> Source:
    table: TableDescriptor = scan.descriptor
    if is_virtual(table):
        return Source.VIRTUAL
    if images is not None and images.holds(table):
        return Source.CACHE
    if scan.access is None:
        return Source.SCAN
    if scan.access.secondary:
        return Source.INDEX if scan.covered else Source.INDEX_JOIN
    return Source.SPANS


def _scans(plan: Plan) -> Iterator[TableScan]:
    """Yields the table scans of a plan that DuckDB reads."""
    match plan:
        case SelectPlan(native=None, analytic=analytic):
            yield from analytic.scans
        case InsertPlan(query=query) if query is not None:
            yield from _scans(query)
        case UpdatePlan(finder=finder) | DeletePlan(finder=finder):
            if finder.analytic is not None:
                yield from finder.analytic.scans


def _accesses(plan: Plan) -> Iterator[KeyAccess]:
    """The accesses by secondary indexes."""
    found: list[KeyAccess | None] = [scan.access for scan in _scans(plan)]
    match plan:
        case SelectPlan(native=native) if native is not None:
            found.append(native.access)
        case InsertPlan(query=SelectPlan(native=native)) if native is not None:
            found.append(native.access)
        case UpdatePlan(finder=finder) | DeletePlan(finder=finder):
            found.append(finder.access)
    return (access for access in found if access is not None and access.secondary)
