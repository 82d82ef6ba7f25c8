"""Views: CREATE [OR REPLACE] and DROP, and what no change may take from them.

A view that no other one reads may be replaced by any query, whose columns are the view's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import Column, DescriptorState, TableDescriptor
from ....catalog.descriptors.view_query import ViewQuery
from ....catalog.store.view_dependencies import publish_view, views_of
from ....catalog.values.errors import SQLError
from ....kvlayer.process.fibre import in_slices
from ...analyze.binder import Relations, refuse_parameters, tables_of
from ...analyze.calls.row_calls import calls_in
from ...analyze.views import dependencies, settled_text, with_name
from ...introspection.virtual_table import virtual_tables
from ...parse import parse
from ...plan.needs import needs_of
from ...plan.planner import plan_statement
from ...plan.plans import SelectPlan
from ...results.results import ResultColumn
from ...runtime.authorization import require
from ...runtime.relations import not_a_view
from ...syntax import schema_statements as s
from ...syntax.statement import ObjectName
from ...syntax.statements import Query
from ..changer import Changer, found_of
from ..query.result_shape import columns_of

# CREATE VIEW


async def create(changer: Changer, statement: s.CreateView) -> None:
    """CREATE VIEW."""
    name, parents, taken = await changer.place_of(statement.name)
    before = await _replaced(changer, statement) if taken else None
    if before is None:
        new_id = await changer.descriptors.allocate_id()
    query, found = await _made(changer, statement)
    columns = tuple(
        Column(id=place, name=column.name, type=column.type)
        for place, column in enumerate(found, start=1)
    )
    next_id = len(columns) + 1
    if before is None:
        view = TableDescriptor(
            id=new_id,
            name=name,
            database_id=parents[0],
            schema_id=parents[1],
            columns=columns,
            primary_key=(),
            next_column_id=next_id,
            view=query,
        )
    else:
        if any(read.table_id == before.id for read in query.reads):
            raise SQLError(
                "42P17",
                f'view "{before.name}" would read itself',
                hint="Create the new query under another name.",
            )
        view = replace(before, columns=columns, next_column_id=next_id, view=query)
    await publish(changer, before, view)


async def _replaced(changer: Changer, statement: s.CreateView) -> TableDescriptor:
    """The view that CREATE OR REPLACE replaces. Raises SQLError 42P07 and 42809."""
    named = statement.name
    found = await changer.find(named, views=True)
    if not statement.replaces:
        raise SQLError("42P07", f'relation "{named}" already exists', position=named.position)
    if found is None or found.view is None:
        raise not_a_view(named)
    await refuse_read(changer, found, "replace", None)
    return found


async def _made(
    changer: Changer, statement: s.CreateView
) -> tuple[ViewQuery, Sequence[ResultColumn]]:
    """Returns the query as the view stores it, and the view's columns. Raises SQLError."""
    (query,) = (await in_slices(lambda: parse(statement.text))).statements
    assert isinstance(query, Query), statement
    refuse_parameters(query.tree, "a view")
    for call in calls_in(query.tree):
        raise SQLError("0A000", f"a view cannot call {call.name.lower()}")
    relations, plan = await planned_query(changer, query)  # errors have the author's positions
    for parts, table in relations.items():
        if table.temporary:
            raise SQLError(
                "0A000",
                f'a view cannot read temporary table "{".".join(parts)}"',
                hint="It would end with the session: create the table without TEMPORARY.",
            )
    names = {parts: await _full_name(changer, table) for parts, table in relations.items()}
    text = await in_slices(lambda: settled_text(statement.text, relations, names))
    full = {names[parts]: table for parts, table in relations.items()}
    reads = await in_slices(lambda: dependencies(text, full))
    if plan.native is not None:
        found: Sequence[ResultColumn] = plan.native.names
    else:
        select = replace(plan.analytic, positions={})
        found = await columns_of(select, changer.services.analytics)
    _refuse_twice([column.name for column in found], statement.name)
    return ViewQuery(text, reads), found


def _refuse_twice(columns: Sequence[str], view: ObjectName) -> None:
    """Raises SQLError 42701 where two columns of a view have one name."""
    for place, column in enumerate(columns):
        if column in columns[:place]:
            raise SQLError(
                "42701",
                f'column "{column}" specified more than once',
                hint="Give the columns other names behind AS.",
                position=view.position,
            )


async def planned_query(changer: Changer, query: Query) -> tuple[Relations, SelectPlan]:
    """The tables of a query that the actor may run, and its plan. Raises SQLError."""
    tables = await in_slices(lambda: tables_of(query))
    relations = await changer.resolve(tables.names)
    needs = needs_of(query, tables, relations)
    await require(changer.services, changer.user, needs, changer.transaction)
    plan = await in_slices(lambda: plan_statement(query, relations))
    assert isinstance(plan, SelectPlan), plan
    return relations, plan


async def _full_name(changer: Changer, table: TableDescriptor) -> tuple[str, ...]:
    if table.id < 0:
        virtual = next(each for each in virtual_tables() if each.id == table.id)
        return virtual.schema, virtual.name
    return await changer.parts(table)


# DROP VIEW


async def drop(changer: Changer, statement: s.DropView) -> str | None:
    """Raises SQLError 42P01, 42809 and 2BP01."""

    async def find(name: ObjectName) -> TableDescriptor | None:
        found = await changer.find(name, views=True, if_exists=statement.if_exists)
        if found is not None and found.view is None:
            raise not_a_view(name)
        return found

    found, notice = await found_of(changer, statement, find, "views")
    await drop_views(changer, found, cascade=statement.cascade)
    return notice


async def drop_views(changer: Changer, views: Sequence[TableDescriptor], *, cascade: bool) -> None:
    """Drops views, and with `cascade` those that read them. Raises SQLError 2BP01."""
    left = {view.id: view for view in views}
    wanted = list(views)
    while wanted:
        view = wanted.pop()
        readers = await views_of(changer.descriptors, changer.transaction, view.id)
        readers = [reader for reader in readers if reader.id not in left]
        if readers and not cascade:
            raise depended_on(view, readers[0], "drop", None)
        left |= {reader.id: reader for reader in readers}
        wanted += readers
    for view in left.values():
        await publish(changer, view, replace(view, state=DescriptorState.DROPPED))


async def drop_readers(
    changer: Changer, tables: Sequence[TableDescriptor], *, cascade: bool
) -> None:
    """Drops the views that read tables which are about to be dropped. Raises SQLError 2BP01."""
    for table in () if cascade else tables:
        await refuse_read(changer, table, "drop", None)
    found = [view for table in tables for view in await _readers(changer, table, None)]
    await drop_views(changer, list({view.id: view for view in found}.values()), cascade=cascade)


async def publish(
    changer: Changer, before: TableDescriptor | None, changed: TableDescriptor
) -> None:
    """Publishes what a view has become when there is room for its next version, or a new one."""
    descriptors, transaction = changer.descriptors, changer.transaction
    if before is not None:
        await changer.wait_for_room(before)
        changed = replace(changed, version=descriptors.next_version(transaction, before))
    await publish_view(descriptors, transaction, before, changed)


# ALTER TABLE … RENAME TO, of a view and of what views read


async def rename(changer: Changer, view: TableDescriptor, name: str) -> None:
    """Gives a view another name. Raises SQLError 42P07."""
    await _rename_in_readers(changer, view, name)
    await publish(changer, view, replace(view, name=name))


async def _rename_in_readers(changer: Changer, table: TableDescriptor, name: str) -> None:
    """Writes the new name of a relation into the views that read it."""
    before = await changer.parts(table)
    for reader in await _readers(changer, table, None):
        assert reader.view is not None, reader
        text = with_name(reader.view.text, before, (*before[:-1], name))
        await publish(changer, reader, replace(reader, view=replace(reader.view, text=text)))


# What views hold back


async def refuse_read(
    changer: Changer, table: TableDescriptor, what: str, column: Column | None
) -> None:
    """Raises SQLError 2BP01 where a view reads the table, or the column of it."""
    for view in await _readers(changer, table, column):
        raise depended_on(table, view, what, column)


async def _readers(
    changer: Changer, table: TableDescriptor, column: Column | None
) -> list[TableDescriptor]:
    """The views that read a table themselves, or one column of it."""
    found: list[TableDescriptor] = []
    for view in await views_of(changer.descriptors, changer.transaction, table.id):
        assert view.view is not None, view
        for read in view.view.reads:
            if read.table_id == table.id and (column is None or column.id in read.columns):
                found.append(view)
    return found


def depended_on(
    table: TableDescriptor, view: TableDescriptor, what: str, column: Column | None
) -> SQLError:
    """Returns the error (2BP01) for a change of a table, or of one column, that a view reads."""
    kind = "table" if table.view is None else "view"
    thing = f'{kind} "{table.name}"'
    if column is not None:
        thing = f'column "{column.name}" of {thing}'
    hint = f"Drop the view first, and create it again: SHOW CREATE TABLE {view.name} says how."
    if what == "drop":
        hint = "Use CASCADE to drop the view too."
    return SQLError(
        "2BP01", f'cannot {what} {thing} because view "{view.name}" depends on it', hint=hint
    )


async def check_views(changer: Changer, table: TableDescriptor, command: s.AlterCommand) -> None:
    """Raises SQLError 2BP01 where a command of ALTER TABLE would change what a view reads. DROP
    COLUMN … CASCADE drops the views that read the column, and those upon them; a table's new name
    goes into them, unless the table is locked: it has its new name behind the transaction."""
    match command:
        case s.RenameTable() if table.locked:
            await refuse_read(changer, table, "rename", None)
        case s.RenameTable(new_name=name):
            await _rename_in_readers(changer, table, name)
        case s.DropColumn(name=name) | s.RenameColumn(name=name) | s.AlterType(name=name):
            column = table.find_column(name)
            if column is None:
                return
            if isinstance(command, s.DropColumn) and command.cascade:
                await drop_views(changer, await _readers(changer, table, column), cascade=True)
                return
            what = {s.DropColumn: "drop", s.RenameColumn: "rename"}.get(type(command))
            await refuse_read(changer, table, what or "alter the type of", column)
