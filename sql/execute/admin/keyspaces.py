"""SHOW KEYSPACES."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rights.privileges import securable
from ....kvlayer.access import StoreAccess
from ....kvlayer.clock import format_timestamp
from ....kvlayer.raw import keyspace_span
from ....kvlayer.replica import Look
from ...results.results import INT8, STRING, Result, Row, listing
from ...runtime.authorization import Actor

COLUMNS = [
    ("schema_name", STRING),
    ("keyspace_name", STRING),
    ("keyspace_id", INT8),
    ("ttl_seconds", INT8),
    ("role", STRING),
    ("resolved", STRING),
]


async def show_keyspaces(actor: Actor) -> Result:
    """Those of the database on which the user has some right, by schema and name."""
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
    return listing("SHOW KEYSPACES", COLUMNS, rows)


async def _role(store: StoreAccess, table: TableDescriptor) -> tuple[str, str | None]:
    """`main` or `replica`, and up to what timestamp a replica has everything of its source."""
    assert table.keyspace is not None, table
    if not table.keyspace.replica:
        return "main", None
    state = await store.replica(keyspace_span(table.id), Look())
    if state is None or not state.resolved:
        return "replica", None
    return "main" if state.ended else "replica", format_timestamp(state.resolved)
