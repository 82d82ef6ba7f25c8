"""Statements of DDL, and the waits around them. Databases, tables, tables made of queries and
storage parameters are here.

A change of an existing table waits twice: before, until no lease on the version before the newest
is left (the two-version invariant would refuse the change), and after its commit, until every node
has let go of the version that it replaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.descriptors.names import TableName
from ....catalog.descriptors.publish_rules import LOCK_PARAMETER
from ....catalog.descriptors.storage_parameters import parse_names, without_ignored
from ....catalog.leases import LeaseWaitTimeout
from ....catalog.rights.privileges import Privilege
from ....catalog.store.catalog import TableDefinition
from ....catalog.values.errors import SQLError
from ....kvlayer.errors import LockTimeout, RetryableTransaction
from ...analyze.binder import refuse_parameters
from ...analyze.calls.client_functions import ClientFacts
from ...analyze.default_expressions import with_default
from ...analyze.scalars import Bindings
from ...introspection.registry import Introspection
from ...parse import text_of
from ...results.results import Result
from ...runtime.services import Services
from ...syntax import schema_statements as s
from ...syntax import statements
from ...syntax.statement import Option, at, refuse_twice
from ..changer import LEASE_WAIT, Changer, Skipped, new_table_name
from ..query.reading import run_select
from ..write.row_rules import RowRules, encode_batch
from ..write.sequences import SequencesOfUser, with_draws_of
from ..write.steps import batches_of
from .given_columns import ascending, hidden_key, notices, plain_column
from .schema_changes import SchemaChangeStatements
from .views import planned_query


async def wait_until_seen(
    services: Services, table_ids: Sequence[int], job_ids: Sequence[int] = ()
) -> str | None:
    """Returns when every node has the newest versions, and schema changes are done; a notice, if
    that takes too long.

    The change is committed by then, so a node that lags is no error of the statement; a schema
    change that failed is, and has been undone.
    """
    try:
        notices = [await services.schema_changes.wait(job_id) for job_id in job_ids]
    except SQLError:
        # What was undone is in force for those who hold the version before: they are waited for.
        await _one_version(services, table_ids)
        raise
    told = next((notice for notice in notices if notice is not None), None)
    return told or await _one_version(services, table_ids)


async def _one_version(services: Services, table_ids: Sequence[int]) -> str | None:
    """Returns when nobody holds an older version; a notice, if that takes too long."""
    timeout = services.store.settings.get(LEASE_WAIT)
    for table_id in table_ids:
        try:
            await services.leases.wait_for_one_version(table_id, timeout=timeout)
        except LeaseWaitTimeout as error:
            return f"the change is committed, but {error.message}"
        except (LockTimeout, RetryableTransaction) as error:
            return f"the change is committed, but it is not known who has seen it: {error}"
    return None


# Databases and tables


async def create_database(changer: Changer, statement: statements.CreateDatabase) -> None:
    await changer.need_system(Privilege.CREATEDB)
    created = await changer.services.catalog.create_database(
        changer.transaction, statement.name, if_not_exists=statement.if_not_exists
    )
    if not created:
        raise Skipped(f'database "{statement.name}" already exists')


async def create_table(changer: Changer, statement: statements.CreateTable) -> str | None:
    name = await new_table_name(changer, statement.table, temporary=statement.temporary)
    columns = [_column(column) for column in statement.columns]
    created, ignored = await _created(
        changer, statement, name, columns, statement.primary_key, statement.primary_name
    )
    await SchemaChangeStatements(changer).complete(created, statement)
    return notices(ignored, ascending(statement.elements))


async def _created(
    changer: Changer,
    statement: statements.CreateTable | statements.CreateTableAs,
    name: TableName,
    columns: Sequence[Column],
    key: tuple[str, ...] = (),
    key_name: str | None = None,
) -> tuple[TableDescriptor, str | None]:
    """The new table of a statement, whose key is hidden where none is given, and a notice of
    parameters that are ignored. Raises Skipped where the table is there."""
    if not key:
        columns = [*columns, hidden_key(columns)]
        key = (columns[-1].name,)
    parameters, ignored = without_ignored(_given(statement.parameters))
    definition = TableDefinition(
        name=name,
        columns=columns,
        primary_key=key,
        primary_name=key_name,
        parameters=parameters,
        temporary=statement.temporary,
    )
    with at(_first_position(statement.parameters, statement.table.position)):
        created = await changer.services.catalog.create_table(
            changer.transaction, definition, if_not_exists=statement.if_not_exists
        )
    if created is None:
        raise Skipped(f'relation "{statement.table}" already exists')
    return created, _ignored(ignored)


def _ignored(names: Sequence[str]) -> str | None:
    """Returns the notice for storage parameters that have no effect."""
    return f"ignored, for they mean nothing here: {', '.join(names)}" if names else None


def _column(given: s.ColumnDefinition) -> Column:
    plain = plain_column(1, given)
    column = plain if given.default is None else with_default(plain, given.default)
    return replace(column, computed=None if given.computed is None else text_of(given.computed))


async def create_table_as(changer: Changer, statement: statements.CreateTableAs) -> Result:
    """The table and its rows, in the transaction. Its key is hidden."""
    name = await new_table_name(changer, statement.table, temporary=statement.temporary)
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

    async def run(drawing: Bindings) -> Result:
        refuse_parameters(statement.query.tree, "CREATE TABLE AS")
        _, plan = await planned_query(changer, statement.query)
        return await run_select(plan, changer.transaction, drawing)

    drawn_from = SequencesOfUser(services, user, database, changer.transaction)
    found = await with_draws_of(drawn_from, bindings, run)
    columns = [Column(id=1, name=column.name, type=column.type) for column in found.columns]
    table, ignored = await _created(changer, statement, name, columns)
    rows, rules = found.fetch_arrow(), RowRules.of(table)
    named = rows.rename_columns([column.name for column in table.shown_columns])
    for batch in batches_of(named):
        encoded = await encode_batch(rules, batch, bindings)
        await encoded.apply_in(changer.transaction)
        await asyncio.sleep(0)
    return Result(tag=f"SELECT {rows.num_rows}", row_count=rows.num_rows, notice=ignored)


async def alter(changer: Changer, statement: s.AlterTable) -> str | None:
    match statement.commands:
        case [s.SetParameters() as command]:
            return await _set_parameters(changer, statement, command)
    return await change_table(changer, statement)


async def _set_parameters(
    changer: Changer, statement: s.AlterTable, command: s.SetParameters
) -> str | None:
    catalog = changer.services.catalog
    with at(statement.table.position):
        found = await changer.found(statement.table, if_exists=statement.if_exists)
        await changer.wait_for_room(found)
    with at(_first_position(command.parameters, statement.table.position)):
        given, ignored = without_ignored(_given(command.parameters))
        if ignored and not given:
            return _ignored(ignored)
        locks = LOCK_PARAMETER in parse_names(given)
        if found.locked and not locks:
            return await change_table(changer, statement)
        if command.reset:
            await catalog.reset_parameters(changer.transaction, found, given)
        else:
            await catalog.set_parameters(changer.transaction, found, given)
    return None


def _given(parameters: Sequence[Option]) -> dict[str, object]:
    refuse_twice(parameters, "parameter")
    return {parameter.name: parameter.value for parameter in parameters}


def _first_position(parameters: Sequence[Option], otherwise: int) -> int:
    return parameters[0].position if parameters else otherwise


async def change_table(changer: Changer, statement: s.TableChange) -> str | None:
    return await SchemaChangeStatements(changer).run(statement)
