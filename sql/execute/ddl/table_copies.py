"""Tables made after others: CREATE TABLE … AS a query, and LIKE another table."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.descriptors.names import TableName
from ....catalog.descriptors.storage_parameters import without_ignored
from ....catalog.store.catalog import ColumnDefinition, TableDefinition, not_a_table
from ....catalog.store.show_create import show_create
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Transaction
from ....kvlayer.fibre import in_slices
from ...analyze.binder import tables_of
from ...analyze.calls.client_functions import ClientFacts
from ...analyze.columns.hidden_columns import hidden_key
from ...analyze.scalars import Bindings
from ...introspection.rows import Introspection
from ...parse import parse
from ...plan.needs import needs_of
from ...plan.planner import plan_statement
from ...plan.plans import SelectPlan
from ...results.as_of import datetime_of
from ...results.results import Result
from ...runtime.authorization import require
from ...runtime.relations import LeaseScope, resolve, resolve_all
from ...runtime.services import Services
from ...syntax import schema_statements as s
from ...syntax.names import TypeName, UserTypeName
from ...syntax.schema_statements import Copied, LikeTable
from ...syntax.statements import CreateTable, CreateTableAs
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


# LIKE


async def with_likes(
    services: Services, statement: CreateTable, transaction: Transaction, database: str
) -> CreateTable:
    """The statement with what LIKE takes of other tables written out.

    What a table is like is read from its own SHOW CREATE TABLE. Foreign keys are never taken over,
    as in Postgres.
    """
    columns = list(statement.columns)
    for like in reversed(statement.likes):
        source = await resolve(services, transaction, like.table, database)
        if source.view is not None:
            raise not_a_table(source)
        taken = _taken(source, like)
        columns[like.place : like.place] = taken.columns
        statement = replace(
            statement,
            elements=(*taken.elements, *statement.elements),
            primary_key=statement.primary_key or taken.primary_key,
        )
    return replace(statement, columns=tuple(columns), likes=())


async def comments_of_likes(
    services: Services, statement: CreateTable, transaction: Transaction, database: str
) -> dict[str, str]:
    """By the names of columns, the comments that LIKE … INCLUDING COMMENTS takes over."""
    taken: dict[str, str] = {}
    for like in statement.likes:
        if Copied.COMMENTS in like.copied:
            source = await resolve(services, transaction, like.table, database)
            for column in source.shown_columns:
                if column.comment is not None:
                    taken[column.name] = column.comment
    return taken


def _own_type(source: TableDescriptor, column: s.ColumnDefinition) -> TypeName:
    """An enumeration is the one of the column itself: its name may mean another, or none, here."""
    type = source.column(column.name).type
    if enum_in(type) is None:
        return column.type
    return UserTypeName(column.type.name, column.type.arguments, column.type.position, type)


def _taken(source: TableDescriptor, like: LikeTable) -> CreateTable:
    (made,) = parse(show_create(source)).statements
    assert isinstance(made, CreateTable), source
    hidden = {column.name for column in source.key_columns} if source.keyless else set()
    columns = [
        replace(
            column,
            type=_own_type(source, column),
            default=column.default if Copied.DEFAULTS in like.copied else None,
            identity=column.identity if Copied.IDENTITY in like.copied else None,
            computed=column.computed if Copied.GENERATED in like.copied else None,
            position=like.table.position,
        )
        for column in made.columns
        if column.name not in hidden
    ]
    elements = tuple(
        element
        for element in made.elements
        if (Copied.CONSTRAINTS if isinstance(element, s.Check) else Copied.INDEXES) in like.copied
    )
    keyed = Copied.INDEXES in like.copied and not source.keyless
    return replace(
        made,
        columns=tuple(columns),
        elements=elements,
        primary_key=made.primary_key if keyed else (),
    )
