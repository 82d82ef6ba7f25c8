"""Names of things that are to be made."""

from __future__ import annotations

from ....catalog.descriptors.names import TableName
from ....catalog.descriptors.system_tables import PUBLIC_SCHEMA
from ...runtime.authorization import Actor
from ...runtime.relations import full_name, make_temporary_schema
from ...syntax.names import ObjectName
from ...syntax.statements import OnCommit


async def new_table_name(
    actor: Actor, name: ObjectName, temporary: OnCommit | None = None
) -> TableName:
    """The full name of a table to be made: in a schema of this database, or of another one. That of
    a temporary one lies in the session's schema, which is made."""
    services, transaction, database = actor.services, actor.reader, actor.database
    if temporary is not None:
        schema = await make_temporary_schema(services, transaction, database)
        return TableName(database, schema, name.parts[-1])
    if len(name.parts) == 2 and name.parts[0] != PUBLIC_SCHEMA:
        schemas = await services.catalog.list_schemas(transaction, database)
        if name.parts[0] in schemas:
            return TableName(database, *name.parts)
    return full_name(name, database)
