"""Statements about raw keyspaces. CREATE, ALTER and DROP run in the statement's transaction; SHOW
reads; BACKUP and RESTORE run in no transaction of the session's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.keyspace import Keyspace, whole_seconds
from ....catalog.jobs import JobAction
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.rights.quotas import KEYSPACE_QUOTA
from ....catalog.values.errors import SQLError
from ....changefeed import shown_key
from ....changefeed.backup import BACKUP_QUOTA, BackupRefused, Manifest, OpenedBackup
from ....changefeed.sinks.tailrace import ReplicaFollower, parse_target
from ....kvlayer.access import StoreAccess, Transaction
from ....kvlayer.clock import Timestamp, format_timestamp
from ....kvlayer.errors import KVError
from ....kvlayer.protected_timestamp import ProtectionRefused
from ....kvlayer.raw import check_key, keyspace_span, raw_key, user_key
from ....kvlayer.replication.leadership import Role
from ....kvlayer.replication.replica import Begin, End, Look, ReplicaRefused, source_of
from ....kvlayer.span import Span
from ...results.as_of import resolve_as_of
from ...results.errors import from_kv
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.keyspaces import check_keyspace, replica_resolved
from ...runtime.relations import LeaseScope, find_table, full_name, resolve, unknown_relation
from ...runtime.services import Services, ranged_store
from ...runtime.transactions import alone
from ...syntax import keyspace_statements as s
from ...syntax.statement import ObjectName, Option, at, refuse_twice
from ..changer import Changer, Skipped, new_table_name, settle_rights
from ..query.result_shape import BACKUP_COLUMNS
from .schema_changes import SchemaChangeStatements


async def create(changer: Changer, statement: s.CreateKeyspace) -> None:
    """CREATE KEYSPACE."""
    keyspace = _defined(statement.options)
    name = await new_table_name(changer, statement.name)
    with at(statement.name.position):
        created = await changer.services.catalog.create_keyspace(
            changer.transaction, name, keyspace, if_not_exists=statement.if_not_exists
        )
    if not created:
        raise Skipped(f'relation "{statement.name}" already exists')


def _defined(options: Sequence[Option]) -> Keyspace:
    ttl: int | None = None
    replica = False
    refuse_twice(options)
    for option in options:
        if option.name == "role":
            replica = _replica(option)
        elif option.name == "ttl":
            ttl = whole_seconds(option.value, option.position)
        else:
            raise SQLError(
                "22023",
                f'unknown option "{option.name}" of a keyspace',
                hint="WITH (ttl = '1h') is the time to live of what is put without one, and "
                "WITH (role = 'replica') makes a keyspace that takes another's entries.",
                position=option.position,
            )
    return Keyspace(ttl_seconds=ttl, replica=replica)


def _replica(option: Option) -> bool:
    """Whether a keyspace of that role is a replica."""
    if option.value not in ("main", "replica"):
        raise SQLError(
            "22023",
            f'role "{option.value}" is none of a keyspace',
            hint="A keyspace is 'main', which is the default, or 'replica'.",
            position=option.position,
        )
    return option.value == "replica"


async def promote(changer: Changer, statement: s.PromoteKeyspace) -> Result:
    """Fences the source off, and says below what timestamp nothing of it is missing.

    It takes effect at once, whatever becomes of the transaction: promoting again says the same.
    """
    name = statement.name
    table = await _keyspace(changer, name, Privilege.CREATE)
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


async def transfer(changer: Changer, statement: s.TransferKeyspace) -> Result:
    """Hands the keyspace to a replica of it. As with PROMOTE, no transaction undoes it."""
    name = statement.name
    table = await _keyspace(changer, name, Privilege.CREATE)
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
        senders = await _senders(changer.services, table, follower.address)
        state = await leadership.transfer(table.id, follower, follower.address)
    except KVError as error:
        raise from_kv(error) from error
    finally:
        await follower.close()
    assert state.role is Role.FOLLOWING, state
    for job_id in senders:
        with suppress(SQLError):  # what it sent last was refused: it has failed
            await changer.services.jobs.control(job_id, JobAction.CANCEL)
    row = (follower.address, state.term, format_timestamp(state.resolved))
    return listing("ALTER KEYSPACE", "leader epoch:i checkpoint", [row])


async def split(changer: Changer, statement: s.SplitKeyspace) -> Result:
    """Ranges begin at the keys, for good. As with tables, no transaction undoes it."""
    table = await _keyspace(changer, statement.name, Privilege.CREATE)
    store = ranged_store(changer.services.store)
    try:
        for key in statement.keys:
            check_key(key)
            await store.split(raw_key(table.id, key))
    except KVError as error:
        raise from_kv(error) from error
    rows = [(shown_key(key),) for key in statement.keys]
    return listing("ALTER KEYSPACE", "key", rows)


async def _senders(services: Services, table: TableDescriptor, address: str) -> list[int]:
    """The jobs of the replication of all keys into there. Raises SQLError where there is none: what
    is to lead cannot know what it lacks.

    So nobody has this node connect where no replication may (`changefeed.jobs.reach`).
    """
    found: list[int] = []
    for job in await services.jobs.list(changefeeds_only=True):
        runs = job.replication is not None and job.finished is None and table.id in job.table_ids
        if runs and not job.partial and parse_target(job.sink or "").shown == address:
            found.append(job.id)
    if found:
        return found
    raise SQLError(
        "55000",
        f'no replication sends the whole of keyspace "{table.name}" into {address}',
        hint=f"CREATE REPLICATION r FOR KEYSPACE {table.name} INTO 'tailrace://…' first.",
    )


async def drop(changer: Changer, statement: s.DropKeyspace) -> None:
    name = statement.name
    table = await changer.find(name, views=True, keyspaces=True, if_exists=statement.if_exists)
    if table is None:
        if not statement.if_exists:
            raise unknown_relation(name)
        raise Skipped(f'keyspace "{name}" does not exist')
    check_keyspace(table, name)
    await changer.need_table(table, Privilege.DROP)
    await SchemaChangeStatements(changer).drop(table, "DROP KEYSPACE")


# SHOW


async def show_keyspaces(actor: Actor, statement: s.ShowKeyspaces) -> Result:
    """Lists the database's keyspaces on which the user has a right, by schema and name."""
    admin, rights = await actor.admin(), await actor.rights()
    catalog, rows = actor.services.catalog, list[Row]()
    for schema in await catalog.list_schemas(actor.reader, actor.database):
        for table in await catalog.list_tables(
            actor.reader, actor.database, schema, keyspaces=True
        ):
            if table.keyspace is None:
                continue
            if admin or rights.held(actor.user, securable(table)):
                role, _, _, _, resolved = await _led(actor.services.store, table)
                ttl = table.keyspace.ttl_seconds
                rows.append((schema, table.name, table.id, ttl, role, resolved))
    columns = "schema_name keyspace_name keyspace_id:i ttl_seconds:i role resolved"
    return listing("SHOW KEYSPACES", columns, rows)


async def show_keyspace_ranges(actor: Actor, statement: s.ShowKeyspaceRanges) -> Result:
    """The ranges of a keyspace by their keys, and who leads them. Raises SQLError."""
    store = actor.services.store
    table = await _keyspace(actor, statement.name, Privilege.SELECT)
    ranged = ranged_store(store)
    span = keyspace_span(table.id)
    *led, _ = await _led(store, table)
    rows: list[Row] = []
    for found in ranged.ranges(span):
        newest = format_timestamp(found.max_timestamp) if found.max_timestamp else None
        edges = (_edge(found.start, span), _edge(found.end, span))
        rows.append((*edges, found.id, *led, newest, found.bytes, found.version_count))
    columns = (
        "start_key end_key range_id:i role leader leader_address epoch:i max_timestamp "
        "range_size:i version_count:i"
    )
    return listing("SHOW RANGES", columns, rows)


async def _keyspace(actor: Actor, name: ObjectName, needs: Privilege) -> TableDescriptor:
    """The keyspace of a name. Raises SQLError 42P01, 42809 for a table or a view, and 42501 without
    the privilege."""
    table = await resolve(actor.services, actor.reader, name, actor.database, keyspaces=True)
    check_keyspace(table, name)
    await actor.need_table(table, needs)
    return table


async def _led(
    store: StoreAccess, table: TableDescriptor
) -> tuple[str, str | None, str | None, int | None, str | None]:
    """The store's role for the keyspace: `main`, `replica`, or what lies between where it is handed
    over; its leader, which nobody knows then; the place where writes go from here; the leader's
    epoch, from the first transfer on; and up to what timestamp a replica has everything of its
    source, or had when it became the main."""
    assert table.keyspace is not None, table
    place = source_of(store.id, table.id)
    state = await store.replica(keyspace_span(table.id), Look())
    if state is None and table.keyspace.replica:
        return "replica", None, None, None, None
    if state is None:
        return "main", place, None, None, None
    role = {Role.LEADING: "main", Role.FOLLOWING: "replica"}.get(state.role, state.role.value)
    leader = {Role.LEADING: place, Role.FOLLOWING: state.source}.get(state.role)
    resolved = format_timestamp(state.resolved) if state.resolved else None
    return role, leader, state.leader or None, state.term or None, resolved


def _edge(border: bytes, span: Span) -> str | None:
    """The user's key at which a range begins or ends; None at the keyspace's own ends."""
    if not span.start < border < span.end:
        return None
    try:
        return shown_key(user_key(border))
    except ValueError:  # a range may begin between any two keys of the store
        return "\\x" + border[len(span.start) :].hex()


# BACKUP and RESTORE


async def run_backup(actor: Actor, statement: s.BackupKeyspace | s.RestoreKeyspace) -> Result:
    """Raises SQLError: 42501, 58030 for a folder that will not do or is damaged, 53400."""
    under_way = actor.services.changefeeds.backups.under_way
    under_way[actor.user] += 1
    try:
        settings = actor.services.store.settings
        BACKUP_QUOTA.judge(settings, await actor.rights(), actor.user, under_way)
        if isinstance(statement, s.BackupKeyspace):
            return _told("BACKUP", await _back_up(actor, statement))
        return _told("RESTORE", await _restore(actor, statement))
    except BackupRefused as refused:
        raise SQLError("58030", str(refused)) from refused
    except ProtectionRefused as refused:
        raise SQLError("22023", f"the keyspace cannot be backed up as of then: {refused}") from None
    finally:
        under_way[actor.user] -= 1


async def _back_up(actor: Actor, statement: s.BackupKeyspace) -> Manifest:
    services, name = actor.services, statement.name
    table = await _keyspace(actor, name, Privilege.SELECT)
    at = await _as_of(actor, statement, table)
    path = await services.changefeeds.backup_folder(statement.uri, actor.user)
    return await services.changefeeds.backups.write(
        table, str(full_name(name, actor.database)), at, path
    )


async def _as_of(actor: Actor, statement: s.BackupKeyspace, table: TableDescriptor) -> Timestamp:
    """The timestamp of a keyspace's backup: the one asked for, or the newest that is resolved."""
    store = actor.services.store
    now, resolved = await store.now(), await replica_resolved(store, table, statement.name)
    newest = now if resolved is None else resolved
    if statement.as_of is None:
        return newest
    at = resolve_as_of(statement.as_of, (), now)
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


async def _restore(actor: Actor, statement: s.RestoreKeyspace) -> Manifest:
    """Makes the keyspace, which is there whole when this returns, and not at all otherwise."""
    services = actor.services
    promotes = _promotes(statement.options)
    name = await new_table_name(actor, statement.name)
    path = await services.changefeeds.backup_folder(statement.uri, actor.user)
    backup = await services.changefeeds.backups.read(path)
    keyspace = Keyspace(ttl_seconds=backup.keyspace.ttl_seconds, replica=True)
    made = await _begun_before(actor, statement.name, backup)
    created = made
    if created is None:

        async def create(transaction: Transaction, scope: LeaseScope) -> TableDescriptor | None:
            table = await services.catalog.create_keyspace(transaction, name, keyspace)
            await settle_rights(transaction, actor.user, ())
            await replace(actor, reader=transaction).need_room(KEYSPACE_QUOTA)
            return table

        created, _, _ = await alone(services, create)
    assert created is not None, name
    try:
        await services.changefeeds.backups.restore(backup, created.id, promotes=promotes)
    except ReplicaRefused as refused:
        raise from_kv(refused) from refused  # another restoration goes on with it
    except BaseException:
        if made is None:
            await _undo(actor, created)
        raise
    return backup.manifest


async def _begun_before(
    actor: Actor, name: ObjectName, backup: OpenedBackup
) -> TableDescriptor | None:
    """The keyspace, where a restoration from the same source was cut off."""
    services = actor.services
    reader, database = actor.reader, actor.database
    table = await find_table(
        services, reader, name, database, views=True, keyspaces=True, if_exists=True
    )
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


async def _undo(actor: Actor, table: TableDescriptor) -> None:
    async def drop(transaction: Transaction, scope: LeaseScope) -> None:
        changer = Changer(actor.services, actor.user, actor.database, transaction, scope)
        await SchemaChangeStatements(changer).drop(table, "RESTORE KEYSPACE")

    await alone(actor.services, drop)


def _told(tag: str, manifest: Manifest) -> Result:
    row = (format_timestamp(manifest.upto), manifest.rows, len(manifest.files))
    return listing(tag, BACKUP_COLUMNS, [row])
