"""The hidden schemas of sessions' temporary tables: made with the first table, dropped with the
session, and swept up where a node died before."""

from __future__ import annotations

from ...catalog.descriptors.temporary_schema import TEMPORARY_PREFIX, session_schema
from ...kvlayer.access import Transaction
from ..syntax.schema_statements import DropSchema
from .services import Services


async def make_temporary_schema(services: Services, transaction: Transaction, database: str) -> str:
    """The name of the schema in which the session's temporary tables of a database lie."""
    own = session_schema()
    assert own is not None, "only a session makes temporary tables"
    if not own.name:
        number = services.sessions.next_number()
        own.name = f"{node_prefix(services)}{number}_{transaction.read_timestamp}"
    own.databases.add(database)
    await services.catalog.create_schema(transaction, database, own.name, if_not_exists=True)
    return own.name


def node_prefix(services: Services) -> str:
    """How the schemas of this node's sessions begin. Those of each of its lives differ behind it:
    a timestamp is never drawn twice."""
    return f"{TEMPORARY_PREFIX}{services.leases.node_id}_"


def dropping(database: str, schema: str) -> DropSchema:
    """What drops a temporary schema with all that is in it."""
    return DropSchema(parts=(database, schema), if_exists=True, cascade=True, position=1)


async def orphans(services: Services) -> list[tuple[str, str]]:
    """The databases and schemas that sessions of this node left when it died. To be asked before
    the node has sessions."""
    catalog, found = services.catalog, []
    reader = services.store.begin(read_only=True)
    try:
        for database in await catalog.list_databases(reader):
            schemas = await catalog.list_schemas(reader, database, all_sessions=True)
            prefix = node_prefix(services)
            found += [(database, name) for name in schemas if name.startswith(prefix)]
    finally:
        await reader.rollback()
    return found
