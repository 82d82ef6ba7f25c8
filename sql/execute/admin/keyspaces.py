"""SHOW KEYSPACES, SHOW RANGES FROM KEYSPACE, and SHOW RELAXED LOGS; BACKUP KEYSPACE and RESTORE
KEYSPACE, each in no transaction of the session's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.keyspace import Keyspace
from ....catalog.relaxed.logs import RelaxedLog, list_logs
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.rights.quotas import KEYSPACE_QUOTA
from ....catalog.values.errors import SQLError
from ....changefeed import shown_key
from ....changefeed.backup import BACKUP_QUOTA, BackupRefused, Manifest, OpenedBackup
from ....kvlayer.access import StoreAccess, Transaction
from ....kvlayer.clock import Timestamp, format_timestamp
from ....kvlayer.leadership import Role
from ....kvlayer.protected_timestamp import ProtectionRefused
from ....kvlayer.raw import keyspace_span, user_key
from ....kvlayer.replica import Look, ReplicaRefused, ReplicaState, source_of
from ....kvlayer.span import Span
from ...results.as_of import resolve_as_of
from ...results.errors import from_kv
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...runtime.implicit import alone
from ...runtime.keyspaces import check_keyspace, replica_resolved
from ...runtime.relations import LeaseScope, find_table, full_name, resolve
from ...runtime.services import ranged_store
from ...syntax.keyspace_statements import (
    BackupKeyspace,
    RestoreKeyspace,
    ShowKeyspaceRanges,
    ShowKeyspaces,
)
from ...syntax.names import ObjectName, Option
from ...syntax.relaxed_statements import ShowRelaxedLogs
from ..changer import Changer, new_table_name
from ..ddl.ownership import settle_rights
from ..ddl.schema_changes import SchemaChangeStatements
from ..query.result_shape import BACKUP_COLUMNS
from ..write.relaxed_load import domain_states


async def show_keyspaces(actor: Actor, statement: ShowKeyspaces) -> Result:
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
                role, resolved = await _role(actor.services.store, table)
                ttl = table.keyspace.ttl_seconds
                rows.append((schema, table.name, table.id, ttl, role, resolved))
    columns = "schema_name keyspace_name keyspace_id:i ttl_seconds:i role resolved"
    return listing("SHOW KEYSPACES", columns, rows)


async def _role(store: StoreAccess, table: TableDescriptor) -> tuple[str, str | None]:
    """`main`, `replica`, or what lies between where a keyspace is handed over; and up to what
    timestamp a replica has everything of its source, or had when it became the main."""
    assert table.keyspace is not None, table
    state = await store.replica(keyspace_span(table.id), Look())
    if state is None:
        return "replica" if table.keyspace.replica else "main", None
    return _shown(state.role), format_timestamp(state.resolved) if state.resolved else None


def _shown(role: Role) -> str:
    return {Role.LEADING: "main", Role.FOLLOWING: "replica"}.get(role, role.value)


async def show_keyspace_ranges(actor: Actor, statement: ShowKeyspaceRanges) -> Result:
    """The ranges of a keyspace by their keys, and who leads them. Raises SQLError."""
    store = actor.services.store
    await actor.need_named(statement.name, Privilege.SELECT, keyspaces=True)
    ranged = ranged_store(store)
    table = await _keyspace(actor, statement.name)
    span = keyspace_span(table.id)
    led = _led(store.id, table, await store.replica(span, Look()))
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


async def _keyspace(actor: Actor, name: ObjectName) -> TableDescriptor:
    """The keyspace of a name. Raises SQLError 42P01, and 42809 for a table or a view."""
    table = await resolve(actor.services, actor.reader, name, actor.database, keyspaces=True)
    check_keyspace(table, name)
    return table


def _led(
    store_id: str, table: TableDescriptor, state: ReplicaState | None
) -> tuple[str, str | None, str | None, int | None]:
    """What the store is to the keyspace; its leader, which nobody knows while it is handed over;
    where writes go from here; and the leader's epoch, from the first transfer on."""
    assert table.keyspace is not None, table
    place = source_of(store_id, table.id)
    if state is None:
        replica = table.keyspace.replica
        return ("replica", None, None, None) if replica else ("main", place, None, None)
    leader = {Role.LEADING: place, Role.FOLLOWING: state.source}.get(state.role)
    return _shown(state.role), leader, state.leader or None, state.term or None


def _edge(border: bytes, span: Span) -> str | None:
    """The user's key at which a range begins or ends; None at the keyspace's own ends."""
    if not span.start < border < span.end:
        return None
    try:
        return shown_key(user_key(border))
    except ValueError:  # a range may begin between any two keys of the store
        return "\\x" + border[len(span.start) :].hex()


async def show_relaxed_logs(actor: Actor, statement: ShowRelaxedLogs) -> Result:
    """Lists the logs, a row for each domain, and one row for a log without domains. A user sees
    the logs on each of whose tables it has a right."""
    rows: list[Row] = []
    for log in await list_logs(actor.reader):
        names = await _tables(actor, log)
        if names is None:
            continue
        states = await domain_states(actor.services, actor.reader, log)
        if not states:
            rows.append((log.name, names, None, None, 0, None, None))
        for state in states:
            cut = None if state.position is None else f"{state.position:016x}"
            gaps = "; ".join(map(str, state.gaps)) or None
            domain = f"{state.domain:016x}"
            open_epoch = f"{state.open_since:016x}" if state.open_since is not None else None
            rows.append((log.name, names, domain, cut, state.pending, open_epoch, gaps))
    columns = "log_name tables domain last_cut pending_events:i open_epoch gaps"
    return listing("SHOW RELAXED LOGS", columns, rows)


async def _tables(actor: Actor, log: RelaxedLog) -> str | None:
    """The names of the log's tables; None where its user may not know of them."""
    admin, rights = await actor.admin(), await actor.rights()
    names = []
    for table_id in log.table_ids:
        table = await actor.services.catalog.descriptors.read(actor.reader, table_id)
        assert isinstance(table, TableDescriptor), table_id
        if not admin and not rights.held(actor.user, securable(table)):
            return None
        names.append(table.name)
    return ", ".join(names)


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
    table = await _keyspace(actor, name)
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
    async def drop(transaction: Transaction, scope: LeaseScope) -> None:
        changer = Changer(actor.services, actor.user, actor.database, transaction, scope)
        await SchemaChangeStatements(changer).drop(table, "RESTORE KEYSPACE")

    await alone(actor.services, drop)


def _told(tag: str, manifest: Manifest) -> Result:
    row = (format_timestamp(manifest.upto), manifest.rows, len(manifest.files))
    return listing(tag, BACKUP_COLUMNS, [row])
