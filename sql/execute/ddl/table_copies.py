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
from ....kvlayer.access import Transaction
from ....kvlayer.fibre import in_slices
from ...analyze.binder import tables_of
from ...analyze.calls.client_functions import ClientFacts
from ...analyze.columns.hidden_columns import hidden_key
from ...analyze.scalars import Bindings
from ...introspection.rows import Introspection
from ...plan.needs import needs_of
from ...plan.planner import plan_statement
from ...plan.plans import SelectPlan
from ...results.as_of import datetime_of
from ...results.results import Result
from ...runtime.authorization import require
from ...runtime.relations import LeaseScope, resolve_all
from ...runtime.services import Services
from ...syntax.statements import CreateTableAs
from ..query.reading import run_select
from ..write.computed_defaults import ComputedDefaults
from ..write.mutations import Mutation
from ..write.row_batches import encode_batch
from ..write.row_rules import RowRules
from ..write.sequence_functions import Drawing
from ..write.sequence_rights import SequenceRights
from ..write.stored_sequences import StoredSequences
from .new_names import new_table_name

SLICE_ROWS = 1000
"""Rows that are written before the loop gets a turn."""


async def create_table_as(
    services: Services,
    statement: CreateTableAs,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
    user: str,
) -> Result:
    """The table and its rows, in the transaction. Its key is hidden."""
    name = await new_table_name(
        services, transaction, statement.table, database, statement.temporary
    )
    if statement.if_not_exists and await services.catalog.find(transaction, name):
        there = f'relation "{statement.table}" already exists, skipping'
        return Result(tag="CREATE TABLE AS", notice=there)
    bindings = Bindings(
        (),
        datetime_of(transaction.read_timestamp),
        Introspection(services, database, user),
        services.generators,
        ClientFacts(user=user, database=database),
    )
    drawing = Drawing(
        bindings,
        StoredSequences(
            services.store,
            services.catalog,
            database,
            transaction,
            SequenceRights(services, user, transaction),
        ),
        ComputedDefaults(services.analytics, bindings),
    )
    found = await drawing(
        lambda bindings: _run(services, statement, transaction, scope, database, bindings)
    )
    table, ignored = await _made(services, statement, transaction, name, found)
    rows = found.fetch_arrow() if statement.with_data else found.fetch_arrow().slice(0, 0)
    await _fill(services, table, rows, transaction, bindings)
    notice = f"ignored, for they mean nothing here: {', '.join(ignored)}" if ignored else None
    tag = f"SELECT {rows.num_rows}" if statement.with_data else "CREATE TABLE AS"
    return Result(tag=tag, row_count=rows.num_rows, notice=notice)


async def _run(
    services: Services,
    statement: CreateTableAs,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
    bindings: Bindings,
) -> Result:
    query = statement.query
    if query.tree.find(exp.Parameter) is not None:
        raise SQLError("42P02", "CREATE TABLE AS takes no parameters")
    relations = await resolve_all(
        services,
        transaction,
        await in_slices(lambda: tables_of(query)),
        database,
        scope,
        transaction.read_timestamp,
        transaction,
    )
    await require(services, bindings.client.user, needs_of(query, relations), transaction)
    plan = await in_slices(lambda: plan_statement(query, relations))
    assert isinstance(plan, SelectPlan), plan
    return await run_select(plan, transaction, bindings, services.analytics)


async def _made(
    services: Services,
    statement: CreateTableAs,
    transaction: Transaction,
    name: TableName,
    found: Result,
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
    table = await services.catalog.create_table(transaction, definition)
    assert table is not None, name
    return table, ignored


async def _fill(
    services: Services,
    table: TableDescriptor,
    rows: pa.Table,
    transaction: Transaction,
    bindings: Bindings,
) -> None:
    rules = RowRules.of(table)
    named = rows.rename_columns([column.name for column in table.shown_columns])
    for batch in named.to_batches(max_chunksize=SLICE_ROWS):
        keys, bodies = await encode_batch(rules, batch, bindings, services.analytics)
        await Mutation(rules.codec, keys=list(keys), bodies=list(bodies)).apply_in(transaction)
        await asyncio.sleep(0)
