"""Tables made of queries: CREATE TABLE … AS."""

from __future__ import annotations

import asyncio

import pyarrow as pa
from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.names import TableName
from ....catalog.descriptors.storage_parameters import without_ignored
from ....catalog.store.catalog import ColumnDefinition, TableDefinition
from ....catalog.values.errors import SQLError
from ...analyze.calls.client_functions import ClientFacts
from ...analyze.columns.hidden_columns import hidden_key
from ...analyze.scalars import Bindings
from ...introspection.registry import Introspection
from ...results.results import Result
from ...syntax.statements import CreateTableAs
from ..changer import Changer, Skipped, new_table_name
from ..query.reading import run_select
from ..write.row_rules import RowRules, encode_batch
from ..write.sequences import SequencesOfUser, with_draws_of
from ..write.steps import batches_of
from .views import planned_query


async def create_table_as(changer: Changer, statement: CreateTableAs) -> Result:
    """The table and its rows, in the transaction. Its key is hidden."""
    name = await new_table_name(changer, statement.table, statement.temporary)
    if statement.if_not_exists and await changer.services.catalog.find(changer.transaction, name):
        raise Skipped(f'relation "{statement.table}" already exists')
    services, user, database = changer.services, changer.user, changer.database
    bindings = Bindings(
        (),
        changer.transaction.read_timestamp,
        Introspection(services, database, user),
        services.generators,
        ClientFacts(user=user, database=database),
        analytics=services.analytics,
    )
    sequences = SequencesOfUser(services, user, database, changer.transaction)
    found = await with_draws_of(
        sequences, bindings, lambda drawing: _run(changer, statement, drawing)
    )
    table, ignored = await _made(changer, statement, name, found)
    rows = found.fetch_arrow() if statement.with_data else found.fetch_arrow().slice(0, 0)
    await _fill(changer, table, rows, bindings)
    notice = f"ignored, for they mean nothing here: {', '.join(ignored)}" if ignored else None
    tag = f"SELECT {rows.num_rows}" if statement.with_data else "CREATE TABLE AS"
    return Result(tag=tag, row_count=rows.num_rows, notice=notice)


async def _run(changer: Changer, statement: CreateTableAs, bindings: Bindings) -> Result:
    query = statement.query
    if query.tree.find(exp.Parameter) is not None:
        raise SQLError("42P02", "CREATE TABLE AS takes no parameters")
    _, plan = await planned_query(changer, query)
    return await run_select(plan, changer.transaction, bindings)


async def _made(
    changer: Changer, statement: CreateTableAs, name: TableName, found: Result
) -> tuple[TableDescriptor, list[str]]:
    if len(statement.columns) > len(found.columns):
        raise SQLError(
            "42601",
            "too many column names were specified",
            position=statement.table.position,
        )
    names = [column.name for column in found.columns]
    names[: len(statement.columns)] = statement.columns
    columns = [
        ColumnDefinition(name=label, type=column.type)
        for label, column in zip(names, found.columns, strict=True)
    ]
    key = hidden_key(columns)
    given = {parameter.name: parameter.value for parameter in statement.parameters}
    parameters, ignored = without_ignored(given)
    definition = TableDefinition(
        name=name,
        columns=[*columns, key],
        primary_key=(key.name,),
        parameters=parameters,
        temporary=statement.temporary is not None,
    )
    table = await changer.services.catalog.create_table(changer.transaction, definition)
    assert table is not None, name
    return table, ignored


async def _fill(
    changer: Changer, table: TableDescriptor, rows: pa.Table, bindings: Bindings
) -> None:
    rules = RowRules.of(table)
    named = rows.rename_columns([column.name for column in table.shown_columns])
    for batch in batches_of(named):
        encoded = await encode_batch(rules, batch, bindings)
        await encoded.apply_in(changer.transaction)
        await asyncio.sleep(0)
