"""CREATE and DROP KEYSPACE."""

from __future__ import annotations

from collections.abc import Sequence

from .....catalog.descriptors.keyspace import Keyspace
from .....catalog.rights.privileges import Privilege
from .....catalog.values.errors import SQLError
from .....kvlayer.access import Transaction
from ....results.results import Result
from ....runtime.authorization import Actor
from ....runtime.keyspaces import check_keyspace, whole_seconds
from ....runtime.relations import LeaseScope, find_table, unknown_relation
from ....runtime.services import Services
from ....syntax.keyspace_statements import DropKeyspace, KeyspaceStatement
from ....syntax.names import Option
from ..new_names import new_table_name
from ..schema_changes import SchemaChangeStatements


async def check_keyspaces(actor: Actor, statement: KeyspaceStatement) -> None:
    """Raises SQLError 42501."""
    if isinstance(statement, DropKeyspace):
        await actor.need_named(statement.name, Privilege.DROP, keyspaces=True)
        return
    name = await new_table_name(actor.services, actor.reader, statement.name, actor.database)
    descriptors = actor.services.catalog.descriptors
    _, schema_id = await descriptors.resolve_schema(actor.reader, name.database, name.schema)
    await actor.need_descriptor(schema_id, Privilege.CREATE)


async def run_keyspace_statement(
    services: Services,
    statement: KeyspaceStatement,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
) -> Result:
    if isinstance(statement, DropKeyspace):
        return await _drop(services, statement, transaction, scope, database)
    keyspace = _keyspace(statement.options)
    name = await new_table_name(services, transaction, statement.name, database)
    try:
        created = await services.catalog.create_keyspace(
            transaction, name, keyspace, if_not_exists=statement.if_not_exists
        )
    except SQLError as error:
        error.position = error.position or statement.name.position
        raise
    notice = None if created else f'relation "{statement.name}" already exists, skipping'
    return Result(tag="CREATE KEYSPACE", notice=notice)


def _keyspace(options: Sequence[Option]) -> Keyspace:
    ttl: int | None = None
    for place, option in enumerate(options):
        if any(option.name == other.name for other in options[:place]):
            raise SQLError(
                "42601", f'option "{option.name}" specified more than once',
                position=option.position,
            )  # fmt: skip
        if option.name != "ttl":
            raise SQLError(
                "22023",
                f'unknown option "{option.name}" of a keyspace',
                hint="WITH (ttl = '1h') is the time to live of what is put without one.",
                position=option.position,
            )
        ttl = whole_seconds(option.value, option.position)
    return Keyspace(ttl_seconds=ttl)


async def _drop(
    services: Services,
    statement: DropKeyspace,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
) -> Result:
    name = statement.name
    table = await find_table(
        services,
        transaction,
        name,
        database,
        views=True,
        keyspaces=True,
        if_exists=statement.if_exists,
    )
    if table is None:
        if not statement.if_exists:
            raise unknown_relation(name)
        notice = f'keyspace "{name}" does not exist, skipping'
        return Result(tag="DROP KEYSPACE", notice=notice)
    check_keyspace(table, name)
    changer = SchemaChangeStatements(services, transaction, scope, database)
    await changer.drop(table, "DROP KEYSPACE")
    return Result(tag="DROP KEYSPACE")
