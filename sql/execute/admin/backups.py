"""BACKUP KEYSPACE and RESTORE KEYSPACE: each in no transaction of the session's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.keyspace import Keyspace
from ....catalog.rights.privileges import Privilege
from ....catalog.rights.quotas import KEYSPACE_QUOTA
from ....catalog.values.errors import SQLError
from ....changefeed.backup import BACKUP_QUOTA, BackupRefused, Manifest, OpenedBackup
from ....kvlayer.access import Transaction
from ....kvlayer.clock import Timestamp, format_timestamp
from ....kvlayer.protected_timestamp import ProtectionRefused
from ....kvlayer.raw import keyspace_span
from ....kvlayer.replica import Look, ReplicaRefused
from ...results.as_of import resolve_as_of
from ...results.errors import from_kv
from ...results.results import Result
from ...runtime.authorization import Actor
from ...runtime.keyspaces import check_keyspace, replica_resolved
from ...runtime.relations import LeaseScope, find_table, full_name, unknown_relation
from ...syntax.keyspace_statements import BackupKeyspace, RestoreKeyspace
from ...syntax.names import ObjectName, Option
from ..changer import Changer
from ..ddl.new_names import new_table_name
from ..ddl.ownership import settle_rights
from ..ddl.schema_changes import SchemaChangeStatements
from ..query.result_shape import BACKUP_COLUMNS


async def run_backup(actor: Actor, statement: BackupKeyspace | RestoreKeyspace) -> Result:
    """Raises SQLError: 42501, 58030 for a folder that will not do or is damaged, 53400."""
    under_way = actor.services.changefeeds.backups.under_way
    under_way[actor.user] += 1
    try:
        settings = actor.services.store.settings
        BACKUP_QUOTA.judge(settings, await actor.rights(), actor.user, under_way)
        if isinstance(statement, BackupKeyspace):
            return _told("BACKUP", await _back_up(actor, statement))
        return _told("RESTORE", await _restore(actor, statement))
    except BackupRefused as refused:
        raise SQLError("58030", str(refused)) from refused
    except ProtectionRefused as refused:
        raise SQLError("22023", f"the keyspace cannot be backed up as of then: {refused}") from None
    finally:
        under_way[actor.user] -= 1


async def _back_up(actor: Actor, statement: BackupKeyspace) -> Manifest:
    services, name = actor.services, statement.name
    table = await find_table(
        services, actor.reader, name, actor.database, views=True, keyspaces=True
    )
    if table is None:
        raise unknown_relation(name)
    check_keyspace(table, name)
    await actor.need_table(table, Privilege.SELECT)
    at = await _as_of(actor, statement, table)
    path = await services.changefeeds.backup_folder(statement.uri, actor.user)
    return await services.changefeeds.backups.write(
        table, str(full_name(name, actor.database)), at, path
    )


async def _as_of(actor: Actor, statement: BackupKeyspace, table: TableDescriptor) -> Timestamp:
    """Returns the timestamp of a keyspace's backup: the one asked for, or the newest that is
    resolved."""
    store = actor.services.store
    now, resolved = await store.now(), await replica_resolved(store, table, statement.name)
    newest = now if resolved is None else resolved
    if statement.as_of is None:
        return newest
    at = resolve_as_of(statement.as_of, (), now, store.settings)
    if resolved is None and await actor.services.catalog.descriptors.read_at(table.id, at) is None:
        raise SQLError(
            "42P01",
            f'keyspace "{statement.name}" does not exist as of {format_timestamp(at)}',
            position=statement.as_of.position,
        )
    if at > newest:
        raise SQLError(
            "22023",
            f"AS OF SYSTEM TIME {format_timestamp(at)} lies above {format_timestamp(newest)}, up "
            "to which the replica has everything of its source",
            position=statement.as_of.position,
        )
    return at


async def _restore(actor: Actor, statement: RestoreKeyspace) -> Manifest:
    """Makes the keyspace, which is there whole when this returns, and not at all otherwise."""
    services = actor.services
    promotes = _promotes(statement.options)
    name = await new_table_name(actor, statement.name)
    descriptors = services.catalog.descriptors
    _, schema_id = await descriptors.resolve_schema(actor.reader, name.database, name.schema)
    await actor.need_descriptor(schema_id, Privilege.CREATE)
    path = await services.changefeeds.backup_folder(statement.uri, actor.user)
    backup = await services.changefeeds.backups.read(path)
    keyspace = Keyspace(ttl_seconds=backup.keyspace.ttl_seconds, replica=True)
    made = await _begun_before(actor, statement.name, backup)
    created = made
    if created is None:
        async with _changing(actor) as transaction:
            created = await services.catalog.create_keyspace(transaction, name, keyspace)
            await settle_rights(transaction, actor.user, ())
            await replace(actor, reader=transaction).need_room(KEYSPACE_QUOTA)
    assert created is not None, name
    try:
        await services.changefeeds.backups.restore(backup, created.id, promotes=promotes)
    except ReplicaRefused as refused:
        raise from_kv(refused) from refused  # another restoration goes on with it
    except BaseException:
        if made is None:
            await _drop(actor, created)
        raise
    return backup.manifest


async def _begun_before(
    actor: Actor, name: ObjectName, backup: OpenedBackup
) -> TableDescriptor | None:
    """The keyspace, where a restoration from the same source was cut off."""
    services = actor.services
    try:
        table = await find_table(
            services, actor.reader, name, actor.database, views=True, keyspaces=True
        )
    except SQLError:
        return None
    if table is None or table.keyspace is None or not table.keyspace.replica:
        return None
    state = await services.store.replica(keyspace_span(table.id), Look())
    if state is None or state.resolved or state.note or state.ended:
        return None
    return table if state.source == backup.source else None


def _promotes(options: Sequence[Option]) -> bool:
    """Whether the keyspace is written here from its restoration on."""
    for option in options:
        if option.name != "role" or option.value not in ("main", "replica"):
            raise SQLError(
                "22023",
                f'option "{option.name}" of RESTORE KEYSPACE is not known, or has no such value',
                hint="WITH (role = 'replica') leaves the keyspace to the one that was backed up.",
                position=option.position,
            )
    return all(option.value == "main" for option in options)


async def _drop(actor: Actor, table: TableDescriptor) -> None:
    scope = LeaseScope(actor.services.leases)
    try:
        async with _changing(actor) as transaction:
            changer = Changer(actor.services, actor.user, actor.database, transaction, scope)
            await SchemaChangeStatements(changer).drop(table, "RESTORE KEYSPACE")
    finally:
        scope.release()


@asynccontextmanager
async def _changing(actor: Actor) -> AsyncIterator[Transaction]:
    transaction = actor.services.store.begin()
    try:
        yield transaction
        await transaction.commit()
    except BaseException:
        await transaction.rollback()
        raise


def _told(tag: str, manifest: Manifest) -> Result:
    row = (format_timestamp(manifest.upto), manifest.rows, len(manifest.files))
    return Result(tag=tag, columns=BACKUP_COLUMNS, rows=[row], row_count=1)
