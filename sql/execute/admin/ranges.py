"""Ranges of tables: SPLIT AT, UNSPLIT and SHOW RANGES.

None of it is transactional: a split takes effect when it is durable, and is not rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rights.privileges import Privilege
from ....catalog.rows.key_borders import border_key, pretty_key
from ....catalog.store.catalog import not_a_table
from ....catalog.values.errors import SQLError
from ....kvlayer.errors import RangeRefused
from ....kvlayer.keys import table_span
from ....kvlayer.ranges import RangedStore, RangeInfo
from ....kvlayer.span import Span
from ...analyze.scalars import Bindings, NotNative, compile_scalar
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.relations import resolve
from ...runtime.services import ranged_store
from ...syntax import statements
from ...syntax.statement import ObjectName
from ...syntax.trees import Tree, error_at, position_of

RangeStatement = statements.SplitAt | statements.UnsplitAt | statements.ShowRanges


async def run_ranges(
    actor: Actor, statement: RangeStatement, parameters: Sequence[object]
) -> Result:
    store = ranged_store(actor.services.store)
    table = await _table(actor, statement.table)
    if isinstance(statement, statements.ShowRanges):
        await actor.need_table(table, Privilege.SELECT)
        return _show(store.ranges(table_span(table.id)), table, details=statement.details)
    await actor.need_table(table, Privilege.INSERT)
    bindings = Bindings(parameters, actor.services.store.clock.last)
    return await _change_borders(store, statement, table, bindings)


async def _table(actor: Actor, name: ObjectName) -> TableDescriptor:
    if actor.services.find_virtual(name.parts) is not None:
        raise SQLError("42809", f'"{name}" is computed and has no ranges', position=name.position)
    table = await resolve(actor.services, actor.reader, name, actor.database)
    if table.view is not None:
        raise not_a_table(table)
    return table


async def _change_borders(
    store: RangedStore,
    statement: statements.SplitAt | statements.UnsplitAt,
    table: TableDescriptor,
    bindings: Bindings,
) -> Result:
    if statement.rows is None:  # UNSPLIT ALL
        span = table_span(table.id)
        found = store.ranges(span)
        borders = [each.start for each in found if each.sticky_until and span.contains(each.start)]
    else:
        borders = [_border(table, row, bindings) for row in statement.rows]
    change = store.split if isinstance(statement, statements.SplitAt) else store.unsplit
    try:
        for key in borders:
            await change(key)
    except RangeRefused as error:
        raise SQLError("22023", str(error)) from error
    rows: list[Row] = [(key, pretty_key(key, table)) for key in borders]
    return listing("ALTER TABLE", "key:y pretty", rows)


def _border(table: TableDescriptor, row: tuple[Tree, ...], bindings: Bindings) -> bytes:
    values = [_value(tree, bindings) for tree in row]
    try:
        return border_key(table, table.primary_index, values)
    except SQLError as error:
        columns = table.primary_key
        odd = len(columns) if len(values) > len(columns) else 0
        error.position = error.position or position_of(row[odd])
        raise


def _value(tree: Tree, bindings: Bindings) -> object:
    """Returns the value of a constant expression or a parameter."""
    try:
        return compile_scalar(tree, {}).evaluate((), bindings)
    except NotNative as error:
        raise error_at(tree, "0A000", "borders of ranges are constants and parameters") from error


def _show(found: Sequence[RangeInfo], table: TableDescriptor, *, details: bool) -> Result:
    span = table_span(table.id)
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


_COLUMNS = "start_key end_key range_id:i lease_holder:i split_enforced:b"
_DETAILS = " range_size:i range_size_mb:f version_count:i reads_per_second:f writes_per_second:f"
