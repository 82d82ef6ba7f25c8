"""CREATE, ALTER and DROP KEYSPACE."""

from __future__ import annotations

from collections.abc import Sequence

from .....catalog.descriptors.descriptor import TableDescriptor
from .....catalog.descriptors.keyspace import Keyspace
from .....catalog.rights.privileges import Privilege
from .....catalog.values.errors import SQLError
from .....changefeed import shown_key
from .....changefeed.sinks.tailrace import ReplicaFollower, parse_target
from .....kvlayer.clock import format_timestamp
from .....kvlayer.errors import KVError
from .....kvlayer.leadership import Role
from .....kvlayer.raw import check_key, keyspace_span, raw_key
from .....kvlayer.replica import Begin, End, Look
from ....results.errors import from_kv
from ....results.results import Result, listing
from ....runtime.authorization import Actor
from ....runtime.keyspaces import check_keyspace, whole_seconds
from ....runtime.relations import unknown_relation
from ....runtime.services import Services, ranged_store
from ....syntax import keyspace_statements as s
from ....syntax.names import ObjectName, Option
from ...changer import Changer, new_table_name
from ...positions import at, refuse_twice
from ..schema_changes import SchemaChangeStatements


async def check_keyspaces(actor: Actor, statement: s.KeyspaceStatement) -> None:
    """Raises SQLError 42501."""
    if isinstance(statement, s.DropKeyspace):
        await actor.need_named(statement.name, Privilege.DROP, keyspaces=True)
        return
    if isinstance(statement, s.PromoteKeyspace | s.TransferKeyspace | s.SplitKeyspace):
        await actor.need_named(statement.name, Privilege.CREATE, keyspaces=True)
        return
    name = await new_table_name(actor, statement.name)
    descriptors = actor.services.catalog.descriptors
    _, schema_id = await descriptors.resolve_schema(actor.reader, name.database, name.schema)
    await actor.need_descriptor(schema_id, Privilege.CREATE)


async def run_keyspace_statement(changer: Changer, statement: s.KeyspaceStatement) -> Result:
    """Runs a statement about a raw keyspace in the transaction. Raises SQLError."""
    if isinstance(statement, s.DropKeyspace):
        return await _drop(changer, statement)
    if isinstance(statement, s.PromoteKeyspace):
        return await _promote(changer, statement)
    if isinstance(statement, s.TransferKeyspace):
        return await _transfer(changer, statement)
    if isinstance(statement, s.SplitKeyspace):
        return await _split(changer, statement)
    keyspace = _keyspace(statement.options)
    name = await new_table_name(changer, statement.name)
    with at(statement.name.position):
        created = await changer.services.catalog.create_keyspace(
            changer.transaction, name, keyspace, if_not_exists=statement.if_not_exists
        )
    notice = None if created else f'relation "{statement.name}" already exists, skipping'
    return Result(tag="CREATE KEYSPACE", notice=notice)


def _keyspace(options: Sequence[Option]) -> Keyspace:
    ttl: int | None = None
    replica = False
    refuse_twice(options)
    for option in options:
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


async def _promote(changer: Changer, statement: s.PromoteKeyspace) -> Result:
    """Fences the source off, and says below what timestamp nothing of it is missing.

    It takes effect at once, whatever becomes of the transaction: promoting again says the same.
    """
    name = statement.name
    table = await _found(changer, name)
    assert table.keyspace is not None, table
    span = keyspace_span(table.id)
    if not table.keyspace.replica and await changer.services.store.replica(span, Look()) is None:
        raise SQLError(
            "55000",
            f'keyspace "{name}" is no replica: it is written here already',
            position=name.position,
        )
    await changer.services.store.replica(span, Begin())
    state = await changer.services.store.replica(span, End())
    assert state is not None, table
    checkpoint = format_timestamp(state.resolved) if state.resolved else None
    return listing("ALTER KEYSPACE", "checkpoint", [(checkpoint,)])


async def _transfer(changer: Changer, statement: s.TransferKeyspace) -> Result:
    """Hands the keyspace to a replica of it. As with PROMOTE, no transaction undoes it."""
    name = statement.name
    table = await _found(changer, name)
    leadership = changer.services.leadership
    if leadership is None:
        raise SQLError(
            "55000",
            f'keyspace "{name}" cannot be transferred from a node that has joined its store',
            hint="Say it to the process that serves the store.",
            position=name.position,
        )
    follower = ReplicaFollower(statement.target, changer.services.store)
    try:
        await _check_replicated(changer.services, table, follower.address)
        state = await leadership.transfer(table.id, follower, follower.address)
    except KVError as error:
        raise from_kv(error) from error
    finally:
        await follower.close()
    assert state.role is Role.FOLLOWING, state
    row = (follower.address, state.term, format_timestamp(state.resolved))
    return listing("ALTER KEYSPACE", "leader epoch:i checkpoint", [row])


async def _split(changer: Changer, statement: s.SplitKeyspace) -> Result:
    """Ranges begin at the keys, for good. As with tables, no transaction undoes it."""
    table = await _found(changer, statement.name)
    store = ranged_store(changer.services.store)
    try:
        for key in statement.keys:
            check_key(key)
            await store.split(raw_key(table.id, key))
    except KVError as error:
        raise from_kv(error) from error
    rows = [(shown_key(key),) for key in statement.keys]
    return listing("ALTER KEYSPACE", "key", rows)


async def _check_replicated(services: Services, table: TableDescriptor, address: str) -> None:
    """Raises SQLError where what is to lead is not sent all keys: it cannot know what it lacks.

    So nobody has this node connect where no replication may (`changefeed.jobs.reach`).
    """
    for job in await services.jobs.list(changefeeds_only=True):
        runs = job.replication is not None and job.finished is None and table.id in job.table_ids
        if runs and not job.partial and parse_target(job.sink or "").shown == address:
            return
    raise SQLError(
        "55000",
        f'no replication sends the whole of keyspace "{table.name}" into {address}',
        hint=f"CREATE REPLICATION r FOR KEYSPACE {table.name} INTO 'tailrace://…' first.",
    )


async def _found(changer: Changer, name: ObjectName) -> TableDescriptor:
    """Raises SQLError 42P01, and 42809 for what is no keyspace."""
    table = await changer.find(name, views=True, keyspaces=True)
    if table is None:
        raise unknown_relation(name)
    check_keyspace(table, name)
    return table


async def _drop(changer: Changer, statement: s.DropKeyspace) -> Result:
    name = statement.name
    table = await changer.find(name, views=True, keyspaces=True, if_exists=statement.if_exists)
    if table is None:
        if not statement.if_exists:
            raise unknown_relation(name)
        notice = f'keyspace "{name}" does not exist, skipping'
        return Result(tag="DROP KEYSPACE", notice=notice)
    check_keyspace(table, name)
    await SchemaChangeStatements(changer).drop(table, "DROP KEYSPACE")
    return Result(tag="DROP KEYSPACE")
