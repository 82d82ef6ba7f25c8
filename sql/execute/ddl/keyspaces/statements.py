"""CREATE, ALTER and DROP KEYSPACE."""

from __future__ import annotations

from collections.abc import Sequence

from .....catalog.descriptors.keyspace import Keyspace
from .....catalog.rights.privileges import Privilege
from .....catalog.values.errors import SQLError
from .....kvlayer.access import Transaction
from .....kvlayer.clock import format_timestamp
from .....kvlayer.raw import keyspace_span
from .....kvlayer.replica import Begin, End
from ....results.results import STRING, Result, listing
from ....runtime.authorization import Actor
from ....runtime.keyspaces import check_keyspace, whole_seconds
from ....runtime.relations import LeaseScope, find_table, unknown_relation
from ....runtime.services import Services
from ....syntax.keyspace_statements import DropKeyspace, KeyspaceStatement, PromoteKeyspace
from ....syntax.names import Option
from ..new_names import new_table_name
from ..schema_changes import SchemaChangeStatements


async def check_keyspaces(actor: Actor, statement: KeyspaceStatement) -> None:
    """Raises SQLError 42501."""
    if isinstance(statement, DropKeyspace):
        await actor.need_named(statement.name, Privilege.DROP, keyspaces=True)
        return
    if isinstance(statement, PromoteKeyspace):
        await actor.need_named(statement.name, Privilege.CREATE, keyspaces=True)
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
    if isinstance(statement, PromoteKeyspace):
        return await _promote(services, statement, transaction, database)
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
    replica = False
    for place, option in enumerate(options):
        if any(option.name == other.name for other in options[:place]):
            raise SQLError(
                "42601", f'option "{option.name}" specified more than once',
                position=option.position,
            )  # fmt: skip
        if option.name == "role":
            replica = _role(option)
            continue
        if option.name != "ttl":
            raise SQLError(
                "22023",
                f'unknown option "{option.name}" of a keyspace',
                hint="WITH (ttl = '1h') is the time to live of what is put without one, and "
                "WITH (role = 'replica') makes a keyspace that takes another's entries.",
                position=option.position,
            )
        ttl = whole_seconds(option.value, option.position)
    return Keyspace(ttl_seconds=ttl, replica=replica)


def _role(option: Option) -> bool:
    """Whether a keyspace of that role is a replica."""
    if option.value not in ("main", "replica"):
        raise SQLError(
            "22023",
            f'role "{option.value}" is none of a keyspace',
            hint="A keyspace is 'main', which is the default, or 'replica'.",
            position=option.position,
        )
    return option.value == "replica"


async def _promote(
    services: Services, statement: PromoteKeyspace, transaction: Transaction, database: str
) -> Result:
    """Fences the source off, and says below what timestamp nothing of it is missing.

    It takes effect at once, whatever becomes of the transaction: promoting again says the same.
    """
    name = statement.name
    table = await find_table(services, transaction, name, database, views=True, keyspaces=True)
    if table is None:
        raise unknown_relation(name)
    check_keyspace(table, name)
    assert table.keyspace is not None, table
    if not table.keyspace.replica:
        raise SQLError(
            "55000",
            f'keyspace "{name}" is no replica: it is written here already',
            position=name.position,
        )
    span = keyspace_span(table.id)
    await services.store.replica(span, Begin())
    state = await services.store.replica(span, End())
    assert state is not None, table
    checkpoint = format_timestamp(state.resolved) if state.resolved else None
    return listing("ALTER KEYSPACE", [("checkpoint", STRING)], [(checkpoint,)])


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
