"""The rights of a feed: judged when it is created, and for as long as it runs.

A feed into a sink has its owner's CHANGEFEED on every table, and a stream to a client its user's
CHANGEFEED or SELECT. A feed whose owner could log in when it was made ends when the owner no longer
can, or was dropped; one that a role without login owns has nobody to be locked out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rights.privileges import Privilege, Securable, SecurableKind
from ...catalog.rights.rights import Rights
from ...catalog.values.errors import SQLError
from ..targets import DatabaseTables
from .services import ChangefeedServices


async def check_feed_rights(
    services: ChangefeedServices,
    user: str,
    table_ids: Sequence[int],
    *,
    any_of: Sequence[Privilege] = (Privilege.CHANGEFEED,),
    logs_in: bool,
    whole_database: DatabaseTables | None = None,
) -> None:
    """Raises SQLError 42501 where the user's right to the feed has ended.

    A table that was dropped took its grants with it: what becomes of the feed is for its schema
    feed to say.
    """
    rights = services.rights.current
    if logs_in and not rights.may_log_in(user):
        raise SQLError("42501", f"the feed ends with the login of its owner {user}")
    if rights.admin(user):
        return
    if whole_database is not None:
        _check_database(rights, user, whole_database)
    at = await services.store.now()
    for table_id in table_ids:
        table = await services.descriptors.read_at(table_id, at)
        if not isinstance(table, TableDescriptor) or table.dropped:
            continue
        if not any(rights.allow(user, table, privilege) for privilege in any_of):
            raise SQLError(
                "42501",
                f"user {user} does not have {any_of[0].name} privilege on relation {table.name}",
                hint="A feed ends with its owner's right: grant it, and create the feed again.",
            )


def _check_database(rights: Rights, user: str, database: DatabaseTables) -> None:
    held = rights.held(user, Securable(SecurableKind.DATABASE, database.id, database.name))
    if not held & Privilege.CHANGEFEED:
        raise SQLError(
            "42501",
            f"user {user} does not have CHANGEFEED privilege on database {database.name}",
            hint="A feed ends with its owner's right: grant it, and create the feed again.",
        )
