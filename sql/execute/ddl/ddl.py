"""Databases, tables and storage parameters: statements to the catalog, and the waits around them.

A change of an existing table waits twice: before, until no lease on the version before the newest
is left (the two-version invariant would refuse the change), and after its commit, until every node
has let go of the version that it replaces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, get_args

from ....catalog.descriptors.descriptor import Column
from ....catalog.descriptors.publish_rules import LOCK_PARAMETER
from ....catalog.descriptors.storage_parameters import parse_names, without_ignored
from ....catalog.leases import LeaseWaitTimeout
from ....catalog.store.catalog import ColumnDefinition, TableDefinition
from ....catalog.values.errors import SQLError
from ....kvlayer.errors import LockTimeout, RetryableTransaction
from ...analyze.columns.hidden_columns import hidden_key
from ...parse import text_of
from ...results.results import Result
from ...runtime.relations import unknown_relation
from ...runtime.services import Services
from ...syntax import keyspace_statements as k
from ...syntax import schema_statements as s
from ...syntax import statements
from ...syntax import type_statements as t
from ...syntax.names import Option
from ...syntax.refusals import at, refuse_twice
from ...syntax.relaxed_statements import CreateRelaxedLog, DropRelaxedLog, RelaxedStatement
from ...syntax.schema_statements import ColumnDefinition as ColumnClause
from ...syntax.view_statements import CreateView, DropView, RenameView, ViewStatement
from ..changer import LEASE_WAIT, Changer, Skipped, new_table_name
from ..write.row_expressions import note_types
from . import enum_types, keyspaces, namespaces, relaxed_logs, sequences, views
from .given_columns import column_type, defaults_in, identity_of, with_default
from .notices import ascending, bare_decimals, notices
from .schema_changes import SchemaChangeStatements
from .table_copies import create_table_as

DDL = (
    statements.CreateDatabase
    | statements.CreateTable
    | statements.CreateTableAs
    | statements.DropTable
    | statements.AlterTableSet
    | s.SchemaStatement
    | t.TypeStatement
    | t.SequenceStatement
    | ViewStatement
    | RelaxedStatement
    | k.KeyspaceStatement
)


async def run_ddl(changer: Changer, statement: DDL) -> Result:
    """Carries the statement out in the transaction, and does not commit it."""
    statement = await enum_types.with_named_types(changer, statement)
    await note_types(defaults_in(statement), changer.services.analytics)
    tag, run = _STATEMENTS[type(statement)]
    try:
        outcome = await run(changer, statement)
    except Skipped as skipped:
        outcome = f"{skipped}, skipping"
    return outcome if isinstance(outcome, Result) else Result(tag=tag, notice=outcome)


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
    for notice in notices:
        if notice is not None:
            return notice
    return await _one_version(services, table_ids)


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


async def _create_database(changer: Changer, statement: statements.CreateDatabase) -> None:
    created = await changer.services.catalog.create_database(
        changer.transaction, statement.name, if_not_exists=statement.if_not_exists
    )
    if not created:
        raise Skipped(f'database "{statement.name}" already exists')


async def _create_table(changer: Changer, statement: statements.CreateTable) -> str | None:
    name = await new_table_name(changer, statement.table, statement.temporary)
    statement = sequences.with_sequences(statement)
    inline = [column for column in statement.columns if column.primary_key]
    if len(inline) + bool(statement.primary_key) > 1:
        second = inline[0] if statement.primary_key else inline[1]
        raise SQLError(
            "42P16",
            f'multiple primary keys for table "{name.name}" are not allowed',
            position=second.position,
        )
    columns = [_column(column) for column in statement.columns]
    key = statement.primary_key or tuple(column.name for column in inline)
    if not key:
        columns.append(hidden_key(columns))
        key = (columns[-1].name,)
    parameters, ignored = without_ignored(_given(statement.parameters))
    definition = TableDefinition(
        name=name,
        columns=columns,
        primary_key=key,
        primary_name=inline[0].primary_name if inline else statement.primary_name,
        parameters=parameters,
        temporary=statement.temporary is not None,
    )
    with at(_first_position(statement.parameters, statement.table.position)):
        created = await changer.services.catalog.create_table(
            changer.transaction, definition, if_not_exists=statement.if_not_exists
        )
    if created is None:
        raise Skipped(f'relation "{statement.table}" already exists')
    await sequences.create_owned(changer, statement, created)
    await SchemaChangeStatements(changer).complete(created, statement)
    bare = bare_decimals((column.name, column.type) for column in statement.columns)
    return notices(_ignored(ignored), bare, ascending(statement.elements))


def _ignored(names: Sequence[str]) -> str | None:
    """Returns the notice for storage parameters that have no effect."""
    return f"ignored, for they mean nothing here: {', '.join(names)}" if names else None


def _column(given: ColumnClause) -> ColumnDefinition:
    if given.primary_key and given.nullable:
        raise SQLError(
            "42601",
            f'conflicting NULL/NOT NULL declarations for column "{given.name}"',
            position=given.position,
        )
    plain = Column(id=1, name=given.name, type=column_type(given.type))
    identity = identity_of(given, plain.type)
    column = plain if given.default is None else with_default(plain, given.default)
    return ColumnDefinition(
        name=given.name,
        type=column.type,
        nullable=given.nullable is not False,
        default=column.default,
        has_default=column.has_default,
        default_expression=column.default_expression,
        computed=None if given.computed is None else text_of(given.computed),
        hidden=given.hidden,
        identity=identity,
    )


async def _alter(changer: Changer, statement: statements.AlterTableSet) -> str | None:
    catalog = changer.services.catalog
    with at(statement.table.position):
        found = await changer.find(statement.table)
        if found is None and statement.if_exists:
            raise Skipped(unknown_relation(statement.table).message)
        if found is not None:
            await changer.wait_for_room(found)
    with at(_first_position(statement.parameters, statement.table.position)):
        given, ignored = without_ignored(_given(statement.parameters))
        if ignored and not given:
            return _ignored(ignored)
        if found is None:
            raise unknown_relation(statement.table)
        locks = LOCK_PARAMETER in parse_names(given)
        if found.locked and not locks:
            command = s.SetParameters(
                parameters=statement.parameters, reset=statement.reset, position=1
            )
            alter = s.AlterTable(
                table=statement.table, commands=(command,), if_exists=False, text="ALTER TABLE SET"
            )
            return await SchemaChangeStatements(changer).run(alter)
        if statement.reset:
            await catalog.reset_parameters(changer.transaction, found, given)
        else:
            await catalog.set_parameters(changer.transaction, found, given)
    return None


def _given(parameters: Sequence[Option]) -> dict[str, object]:
    refuse_twice(parameters, "parameter")
    return {parameter.name: parameter.value for parameter in parameters}


def _first_position(parameters: Sequence[Option], otherwise: int) -> int:
    return parameters[0].position if parameters else otherwise


async def _change_table(changer: Changer, statement: s.TableChange) -> str | None:
    return await SchemaChangeStatements(changer).run(statement)


_Run = Callable[[Changer, Any], Awaitable[Result | str | None]]

_STATEMENTS: Mapping[type, tuple[str, _Run]] = {
    statements.AlterTableSet: ("ALTER TABLE", _alter),
    statements.CreateDatabase: ("CREATE DATABASE", _create_database),
    statements.CreateTable: ("CREATE TABLE", _create_table),
    statements.CreateTableAs: ("CREATE TABLE AS", create_table_as),
    statements.DropTable: ("DROP TABLE", namespaces.drop_tables),
    s.AlterTable: ("ALTER TABLE", _change_table),
    s.CommentOn: ("COMMENT", namespaces.comment_on),
    s.CreateIndex: ("CREATE INDEX", _change_table),
    s.CreateSchema: ("CREATE SCHEMA", namespaces.create_schema),
    s.DropDatabase: ("DROP DATABASE", namespaces.drop_database),
    s.DropIndex: ("DROP INDEX", _change_table),
    s.DropSchema: ("DROP SCHEMA", namespaces.drop_schema),
    s.RenameIndex: ("ALTER INDEX", _change_table),
    s.Truncate: ("TRUNCATE TABLE", _change_table),
    CreateView: ("CREATE VIEW", views.create),
    DropView: ("DROP VIEW", views.drop),
    RenameView: ("ALTER VIEW", views.rename),
    t.AlterSequence: ("ALTER SEQUENCE", sequences.alter),
    t.CreateSequence: ("CREATE SEQUENCE", sequences.create),
    t.DropSequence: ("DROP SEQUENCE", sequences.drop),
    **dict.fromkeys(get_args(t.TypeStatement), ("ALTER TYPE", enum_types.alter)),
    t.CreateEnum: ("CREATE TYPE", enum_types.create),
    t.DropType: ("DROP TYPE", enum_types.drop),
    k.CreateKeyspace: ("CREATE KEYSPACE", keyspaces.create),
    k.DropKeyspace: ("DROP KEYSPACE", keyspaces.drop),
    k.PromoteKeyspace: ("ALTER KEYSPACE", keyspaces.promote),
    k.SplitKeyspace: ("ALTER KEYSPACE", keyspaces.split),
    k.TransferKeyspace: ("ALTER KEYSPACE", keyspaces.transfer),
    CreateRelaxedLog: ("CREATE RELAXED LOG", relaxed_logs.create),
    DropRelaxedLog: ("DROP RELAXED LOG", relaxed_logs.drop),
}
"""Statements of DDL: the tag of each, and the function that carries it out in its transaction and
returns a notice, or a result of its own."""
