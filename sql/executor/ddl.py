"""Databases, tables and storage parameters: statements to the catalog, and the waits around them.

A change of an existing table waits twice: before, until no lease on the version before the newest
is left (the two-version invariant would refuse the change), and after its commit, until every node
has let go of the version that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlglot import exp

from ...catalog.catalog import ColumnDefinition, TableDefinition
from ...catalog.catalog_changes import CatalogChanges
from ...catalog.column_types import ColumnType, Datum, coerce
from ...catalog.descriptor import TableDescriptor
from ...catalog.errors import SQLError
from ...catalog.leases import LeaseWaitTimeout
from ...kvlayer.errors import LockTimeout, RetryableTransaction
from ...kvlayer.settings import declare_duration
from ...kvlayer.txn import Transaction
from ..parser import position_of, statements
from ..parser.statements import ObjectName, Option
from ..relations import LeaseScope, changed_tables, full_name
from ..results import Result
from ..scalars import Bindings, NotNative, compile_scalar
from ..services import Services

LEASE_WAIT = declare_duration(
    "sql.schema_change.lease_wait_timeout",
    30.0,
    "how long a schema change waits for leases on older versions to end",
)

DDL = (
    statements.CreateDatabase
    | statements.CreateTable
    | statements.DropTable
    | statements.AlterTableSet
)


async def run_ddl(
    services: Services,
    statement: DDL,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
) -> Result:
    """Carries the statement out in the transaction, and does not commit it."""
    match statement:
        case statements.CreateDatabase(name=name, if_not_exists=if_not_exists):
            created = await services.catalog.create_database(
                transaction, name, if_not_exists=if_not_exists
            )
            notice = None if created else f'database "{name}" already exists, skipping'
            return Result(tag="CREATE DATABASE", notice=notice)
        case statements.CreateTable():
            return await _create_table(services, statement, transaction, database)
        case statements.DropTable():
            return await _drop_tables(services, statement, transaction, scope, database)
        case statements.AlterTableSet():
            return await _alter(services, statement, transaction, scope, database)


async def wait_until_seen(services: Services, table_ids: Sequence[int]) -> str | None:
    """Returns when every node has the newest versions; a notice, if that takes too long.

    The change is committed by then, so a node that lags is no error of the statement.
    """
    timeout = services.store.settings.get(LEASE_WAIT)
    for table_id in table_ids:
        try:
            await services.leases.wait_for_one_version(table_id, timeout=timeout)
        except LeaseWaitTimeout as error:
            return f"the change is committed, but {error.message}"
        except (LockTimeout, RetryableTransaction) as error:
            return f"the change is committed, but it is not known who has seen it: {error}"
    return None


def tables_changed(transaction: Transaction) -> tuple[int, ...]:
    """The tables that existed before the transaction and have a new version in it."""
    if not transaction.commit_checks:
        return ()
    changes = CatalogChanges.of(transaction)
    return tuple(
        descriptor.id
        for descriptor in changes.published
        if isinstance(descriptor, TableDescriptor) and not changes.created(descriptor.id)
    )


async def _create_table(
    services: Services, statement: statements.CreateTable, transaction: Transaction, database: str
) -> Result:
    name = full_name(statement.table, database)
    inline = [column for column in statement.columns if column.primary_key]
    if len(inline) + bool(statement.primary_key) > 1:
        second = inline[0] if statement.primary_key else inline[1]
        raise SQLError(
            "42P16",
            f'multiple primary keys for table "{name.name}" are not allowed',
            position=second.position,
        )
    definition = TableDefinition(
        name=name,
        columns=[_column(column) for column in statement.columns],
        primary_key=statement.primary_key or tuple(column.name for column in inline),
        parameters=_given(statement.parameters),
    )
    with _position(_first_position(statement.parameters, statement.table.position)):
        created = await services.catalog.create_table(
            transaction, definition, if_not_exists=statement.if_not_exists
        )
    notice = None if created else f'relation "{statement.table}" already exists, skipping'
    return Result(tag="CREATE TABLE", notice=notice)


def _column(column: statements.ColumnDefinition) -> ColumnDefinition:
    with _position(column.type.position):
        type = ColumnType.from_sql(column.type.name, column.type.arguments)
    default = None
    if column.default is not None:
        default = _constant(column.default, type, column.name)
    if column.primary_key and column.nullable:
        raise SQLError(
            "42601",
            f'conflicting NULL/NOT NULL declarations for column "{column.name}"',
            position=column.position,
        )
    return ColumnDefinition(
        name=column.name,
        type=type,
        nullable=column.nullable is not False,
        default=default,
        has_default=column.default is not None,
    )


def _constant(tree: exp.Expr, type: ColumnType, column: str) -> Datum:
    """The value of a DEFAULT clause, which may depend on nothing."""
    position = position_of(tree)
    varies = tree.find(exp.Column, exp.Parameter, exp.CurrentTimestamp, exp.CurrentDate)
    try:
        if varies is not None:
            raise NotNative("it varies")
        value = compile_scalar(tree, {}).value(Bindings((), datetime(1970, 1, 1, tzinfo=UTC)))
    except NotNative:
        raise SQLError(
            "0A000",
            f'the default of column "{column}" must be a constant',
            position=position,
        ) from None
    with _position(position):
        return coerce(type, value, column=column)


async def _drop_tables(
    services: Services,
    statement: statements.DropTable,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
) -> Result:
    dropped: list[TableDescriptor] = []
    for table in statement.tables:
        with _position(table.position):
            await _prepare(services, table, transaction, scope, database)
            dropped += await services.catalog.drop_tables(
                transaction, [full_name(table, database)], if_exists=statement.if_exists
            )
    missing = len(statement.tables) - len(dropped)
    notice = f"{missing} of the tables did not exist, skipping" if missing else None
    return Result(tag="DROP TABLE", notice=notice)


async def _alter(
    services: Services,
    statement: statements.AlterTableSet,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
) -> Result:
    catalog, name = services.catalog, full_name(statement.table, database)
    with _position(statement.table.position):
        found = await _prepare(services, statement.table, transaction, scope, database)
        if found is None and statement.if_exists:
            notice = f'relation "{statement.table}" does not exist, skipping'
            return Result(tag="ALTER TABLE", notice=notice)
    with _position(_first_position(statement.parameters, statement.table.position)):
        given = _given(statement.parameters)
        if statement.reset:
            await catalog.reset_parameters(transaction, name, given)
        else:
            await catalog.set_parameters(transaction, name, given)
    return Result(tag="ALTER TABLE")


async def _prepare(
    services: Services,
    table: ObjectName,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
) -> TableDescriptor | None:
    """Makes room for the next version of a table: drops this session's lease, and waits."""
    found = await services.catalog.find(transaction, full_name(table, database))
    if found is None or found.id in changed_tables(transaction):
        return found
    scope.drop(found.id)
    timeout = services.store.settings.get(LEASE_WAIT)
    await services.leases.wait_for_one_version(found.id, timeout=timeout)
    return found


def _given(parameters: Sequence[Option]) -> dict[str, object]:
    given: dict[str, object] = {}
    for parameter in parameters:
        if parameter.name in given:
            raise SQLError(
                "42601",
                f'parameter "{parameter.name}" specified more than once',
                position=parameter.position,
            )
        given[parameter.name] = parameter.value
    return given


def _first_position(parameters: Sequence[Option], otherwise: int) -> int:
    return parameters[0].position if parameters else otherwise


@contextmanager
def _position(position: int | None) -> Iterator[None]:
    """Errors that do not know where they belong belong here."""
    try:
        yield
    except SQLError as error:
        if error.position is None:
            error.position = position
        raise
