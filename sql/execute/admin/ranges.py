"""Ranges of tables: SPLIT AT, UNSPLIT and SHOW RANGES.

None of it is transactional: a split takes effect when it is durable, and is not rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import Index
from ....catalog.rights.privileges import Privilege
from ....catalog.rows.key_borders import border_columns, border_key, pretty_key
from ....catalog.store.catalog import not_a_table
from ....catalog.values.errors import SQLError
from ....kvlayer.errors import RangeRefused
from ....kvlayer.keys import index_span, table_span
from ....kvlayer.ranges import RangeInfo
from ....kvlayer.span import Span
from ...analyze.scalars import Bindings, NotNative, compile_scalar
from ...parse import position_of
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.relations import resolve
from ...runtime.services import RangeStore, ranged_store
from ...syntax import statements

RangeStatement = statements.SplitAt | statements.UnsplitAt | statements.ShowRanges


async def run_ranges(
    actor: Actor, statement: RangeStatement, parameters: Sequence[object]
) -> Result:
    """Carries the statement out. Raises SQLError."""
    shows = isinstance(statement, statements.ShowRanges)
    await actor.need_named(statement.of.table, Privilege.SELECT if shows else Privilege.INSERT)
    store = ranged_store(actor.services.store)
    try:
        table = await _table(actor, statement.of)
    except SQLError as error:
        if error.sqlstate != "42P01" or not statement.of.if_exists:
            raise
        return Result(tag=_tag(statement.of), notice=f"{error.message}, skipping")
    bindings = Bindings(parameters, actor.services.store.clock.last)
    index = _index(table, statement.of)
    match statement:
        case statements.SplitAt() | statements.UnsplitAt():
            return await _change_borders(store, statement, table, index, bindings)
        case statements.ShowRanges(of=of, details=details):
            span = _span(table, of, index)
            return _show(store.ranges(span), span, table, details=details)


async def _table(actor: Actor, of: statements.RangesOf) -> TableDescriptor:
    if actor.services.virtual_tables.find(of.table.parts) is not None:
        raise SQLError(
            "42809", f'"{of.table}" is computed and has no ranges', position=of.table.position
        )
    table = await resolve(actor.services, actor.reader, of.table, actor.database)
    if table.view is not None:
        raise not_a_table(table)
    return table


def _index(table: TableDescriptor, of: statements.RangesOf) -> Index:
    if of.index is None or of.index in (table.primary_index_name, "primary"):
        return table.primary_index
    index = table.find_index(of.index)
    if index is None:
        names = [table.primary_index_name, *(found.name for found in table.indexes)]
        raise SQLError(
            "42704",
            f'index "{of.index}" of relation "{table.name}" does not exist',
            position=of.table.position,
            hint=f"Indexes: {', '.join(names)}.",
        )
    return index


async def _change_borders(
    store: RangeStore,
    statement: statements.SplitAt | statements.UnsplitAt,
    table: TableDescriptor,
    index: Index,
    bindings: Bindings,
) -> Result:
    if statement.rows is None:  # UNSPLIT ALL
        span = _span(table, statement.of, index)
        found = store.ranges(span)
        borders = [each.start for each in found if each.sticky_until and span.contains(each.start)]
    else:
        borders = [_border(table, index, row, bindings) for row in statement.rows]
    change = store.split if isinstance(statement, statements.SplitAt) else store.unsplit
    try:
        for key in borders:
            await change(key)
    except RangeRefused as error:
        raise SQLError("22023", str(error)) from error
    rows: list[Row] = [(key, pretty_key(key, table)) for key in borders]
    return listing(_tag(statement.of), "key:y pretty", rows)


def _span(table: TableDescriptor, of: statements.RangesOf, index: Index) -> Span:
    return table_span(table.id) if of.index is None else index_span(table.id, index.id)


def _border(
    table: TableDescriptor, index: Index, row: tuple[exp.Expr, ...], bindings: Bindings
) -> bytes:
    values = [_value(tree, bindings) for tree in row]
    try:
        return border_key(table, index, values)
    except SQLError as error:
        columns = border_columns(table, index)
        odd = len(columns) if len(values) > len(columns) else 0
        error.position = error.position or position_of(row[odd])
        raise


def _value(tree: exp.Expr, bindings: Bindings) -> object:
    """Returns the value of a constant expression or a parameter."""
    try:
        return compile_scalar(tree, {}).evaluate((), bindings)
    except NotNative as error:
        raise SQLError(
            "0A000",
            "borders of ranges are constants and parameters",
            position=position_of(tree),
        ) from error


def _show(
    found: Sequence[RangeInfo], span: Span, table: TableDescriptor, *, details: bool
) -> Result:
    rows: list[Row] = []
    for each in found:
        row: Row = (
            _edge(each.start, span, table, "before"), _edge(each.end, span, table, "after"),
            each.id, each.lease_holder, bool(each.sticky_until),
        )  # fmt: skip
        if details:
            megabytes = round(each.bytes / 1e6, 3)
            row += (each.bytes, megabytes, each.version_count)
            row += (round(each.reads_per_second, 1), round(each.writes_per_second, 1))
        rows.append(row)
    columns = _COLUMNS + _DETAILS if details else _COLUMNS
    return listing("SHOW RANGES", columns, rows)


def _edge(key: bytes, span: Span, table: TableDescriptor, side: str) -> str:
    """A border within the table as what follows the table's key, another in full."""
    if span.start < key < span.end:
        return "…" + pretty_key(key, table).removeprefix(f"/Table/{table.id}")
    return f"<{side}:{pretty_key(key, table)}>"


def _tag(of: statements.RangesOf) -> str:
    return "ALTER TABLE" if of.index is None else "ALTER INDEX"


_COLUMNS = "start_key end_key range_id:i lease_holder:i split_enforced:b"
_DETAILS = " range_size:i range_size_mb:f version_count:i reads_per_second:f writes_per_second:f"
