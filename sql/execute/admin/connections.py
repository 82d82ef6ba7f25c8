"""External connections, as statements ask for them: see `changefeed.connections`."""

from __future__ import annotations

from ....catalog.rights.privileges import Privilege
from ....changefeed import CONNECTION_QUOTA, list_connections
from ...results.results import Result, listing
from ...runtime.authorization import Actor
from ...syntax import changefeed_statements as s
from .rights import check_new_owner


async def create(actor: Actor, statement: s.CreateConnection) -> None:
    """CREATE EXTERNAL CONNECTION."""
    feeds, name = actor.services.changefeeds, statement.name
    await actor.need_system(Privilege.EXTERNALCONNECTION)
    await feeds.create_connection(actor.reader, name, statement.uri, actor.user)
    await actor.need_room(CONNECTION_QUOTA)


async def alter(actor: Actor, statement: s.AlterConnection) -> None:
    """ALTER EXTERNAL CONNECTION: its URI, or its owner."""
    feeds, name, owner = actor.services.changefeeds, statement.name, statement.owner
    if owner is not None:
        await check_new_owner(actor, owner)
        await feeds.give_connection(actor.reader, name, owner, actor.user)
    else:
        assert statement.uri is not None, statement
        await feeds.alter_connection(actor.reader, name, statement.uri, actor.user)


async def drop(actor: Actor, statement: s.DropConnection) -> None:
    """DROP EXTERNAL CONNECTION."""
    await actor.services.changefeeds.drop_connection(actor.reader, statement.name, actor.user)


async def show_connections(actor: Actor, statement: s.ShowConnections) -> Result:
    """Lists the connections of the user's roles, without secrets; all of them for an admin."""
    rights, admin = await actor.rights(), await actor.admin()
    rows = [
        (each.name, each.uri, each.uri.partition(":")[0], each.owner)
        for each in await list_connections(actor.reader)
        if admin or each.owner in rights.roles_of(actor.user)
    ]
    columns = "connection_name connection_uri connection_type owner_name"
    return listing("SHOW EXTERNAL CONNECTIONS", columns, rows)
