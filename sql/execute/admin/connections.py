"""External connections, as statements ask for them: see `changefeed.connections`."""

from __future__ import annotations

from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.rights.users import PUBLIC, require_role
from ....catalog.values.errors import SQLError
from ....changefeed import CONNECTION_QUOTA, list_connections
from ...results.results import Result, listing
from ...runtime.authorization import Actor
from ...syntax import changefeed_statements as s
from ...syntax.refusals import at


async def change_connection(actor: Actor, statement: s.ConnectionChange) -> Result:
    """CREATE, ALTER or DROP EXTERNAL CONNECTION. Does not commit. Raises SQLError."""
    with at(statement.position):
        skipped = await _change(actor, statement)
    verb = type(statement).__name__.removesuffix("Connection").upper()
    notice = skipped and f'external connection "{statement.name}" {skipped}, skipping'
    return Result(tag=f"{verb} EXTERNAL CONNECTION", notice=notice)


async def _change(actor: Actor, statement: s.ConnectionChange) -> str | None:
    """Returns why nothing was done, if nothing was."""
    feeds, name, transaction = actor.services.changefeeds, statement.name, actor.reader
    match statement:
        case s.CreateConnection():
            await _check_may_create(actor)
            if statement.if_not_exists and await _known(actor, name):
                return "already exists"
            await feeds.create_connection(transaction, name, statement.uri, actor.user)
            await actor.need_room(CONNECTION_QUOTA)
        case _ if statement.if_exists and not await _known(actor, name):
            return "does not exist"
        case s.AlterConnection(owner=None):
            assert statement.uri is not None, statement
            await feeds.alter_connection(transaction, name, statement.uri, actor.user)
        case s.AlterConnection(owner=owner):
            assert owner is not None, statement
            await _check_may_give(actor, owner)
            await feeds.give_connection(transaction, name, owner, actor.user)
        case s.DropConnection():
            await feeds.drop_connection(transaction, name, actor.user)
    return None


async def show_connections(actor: Actor, statement: s.ShowConnections) -> Result:
    """Lists the external connections of the user's roles, without secrets; all of them for an
    admin."""
    rights, admin = await actor.rights(), await actor.admin()
    rows = [
        (each.name, each.uri, each.uri.partition(":")[0], each.owner)
        for each in await list_connections(actor.reader)
        if admin or each.owner in rights.roles_of(actor.user)
    ]
    if statement.name is not None:
        rows = [row for row in rows if row[0] == statement.name]
        if not rows:
            raise SQLError("42704", f'external connection "{statement.name}" does not exist')
    columns = "connection_name connection_uri connection_type owner_name"
    return listing("SHOW EXTERNAL CONNECTIONS", columns, rows)


async def _check_may_create(actor: Actor) -> None:
    held = (await actor.rights()).held(actor.user, SYSTEM)
    if not (held & Privilege.EXTERNALCONNECTION or await actor.admin()):
        raise SQLError(
            "42501",
            f"user {actor.user} does not have EXTERNALCONNECTION system privilege",
            hint=f"GRANT SYSTEM EXTERNALCONNECTION TO {actor.user}.",
        )


async def _check_may_give(actor: Actor, owner: str) -> None:
    """One may give to roles of one's own, as with any other thing."""
    await require_role(actor.reader, owner)
    rights = await actor.rights()
    if owner == PUBLIC or (not await actor.admin() and owner not in rights.roles_of(actor.user)):
        raise SQLError("42501", f"must be member of role {owner}")


async def _known(actor: Actor, name: str) -> bool:
    return any(each.name == name for each in await list_connections(actor.reader))
