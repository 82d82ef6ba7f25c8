"""SHOW KEYSPACES."""

from __future__ import annotations

from ....catalog.rights.privileges import securable
from ...results.results import INT8, STRING, Result, Row, listing
from ...runtime.authorization import Actor

COLUMNS = [
    ("schema_name", STRING),
    ("keyspace_name", STRING),
    ("keyspace_id", INT8),
    ("ttl_seconds", INT8),
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
                rows.append((schema, table.name, table.id, table.keyspace.ttl_seconds))
    return listing("SHOW KEYSPACES", COLUMNS, rows)
