"""SHOW KEYSPACES, SHOW RANGES FROM KEYSPACE, and SHOW RELAXED LOGS."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.relaxed.logs import RelaxedLog, list_logs
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.values.errors import SQLError
from ....changefeed import shown_key
from ....kvlayer.access import StoreAccess
from ....kvlayer.clock import format_timestamp
from ....kvlayer.leadership import Role
from ....kvlayer.ranges import RangeInfo
from ....kvlayer.raw import keyspace_span, user_key
from ....kvlayer.replica import Look, ReplicaState, source_of
from ....kvlayer.span import Span
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.authorization import Actor
from ...runtime.keyspaces import check_keyspace
from ...runtime.relations import find_table, unknown_relation
from ...syntax.keyspace_statements import ShowKeyspaceRanges
from ..write.relaxed_load import domain_states

_KEYSPACES = typed_columns("schema_name keyspace_name keyspace_id:i ttl_seconds:i role resolved")


async def show_keyspaces(actor: Actor) -> Result:
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
    return listing("SHOW KEYSPACES", _KEYSPACES, rows)


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


@runtime_checkable
class _RangedStore(Protocol):
    """A store whose ranges are in this process."""

    def ranges(self, span: Span) -> list[RangeInfo]: ...


_RANGES = typed_columns(
    "start_key end_key range_id:i role leader leader_address epoch:i max_timestamp range_size:i "
    "version_count:i"
)


async def show_keyspace_ranges(actor: Actor, statement: ShowKeyspaceRanges) -> Result:
    """The ranges of a keyspace by their keys, and who leads them. Raises SQLError."""
    name, store = statement.name, actor.services.store
    await actor.need_named(name, Privilege.SELECT, keyspaces=True)
    if not isinstance(store, _RangedStore):
        raise SQLError(
            "0A000",
            "ranges are shown and changed on the node that has the store",
            hint="Connect to the node that was started without --join.",
        )
    table = await find_table(
        actor.services, actor.reader, name, actor.database, views=True, keyspaces=True
    )
    if table is None:
        raise unknown_relation(name)
    check_keyspace(table, name)
    span = keyspace_span(table.id)
    led = _led(store.id, table, await store.replica(span, Look()))
    rows = [_range_row(each, span, led) for each in store.ranges(span)]
    return listing("SHOW RANGES", _RANGES, rows)


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


def _range_row(
    found: RangeInfo, span: Span, led: tuple[str, str | None, str | None, int | None]
) -> Row:
    newest = format_timestamp(found.max_timestamp) if found.max_timestamp else None
    edges = (_edge(found.start, span), _edge(found.end, span))
    return (*edges, found.id, *led, newest, found.bytes, found.version_count)


def _edge(border: bytes, span: Span) -> str | None:
    """The user's key at which a range begins or ends; None at the keyspace's own ends."""
    if not span.start < border < span.end:
        return None
    try:
        return shown_key(user_key(border))
    except ValueError:  # a range may begin between any two keys of the store
        return "\\x" + border[len(span.start) :].hex()


COLUMNS = typed_columns("log_name tables domain last_cut pending_events:i open_epoch gaps")


async def show_relaxed_logs(actor: Actor) -> Result:
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
    return listing("SHOW RELAXED LOGS", COLUMNS, rows)


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
