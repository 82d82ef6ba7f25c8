"""Rights on mirrors: to read one, a user must have the right to read every table whose rows its
file holds."""

from __future__ import annotations

from ..catalog.descriptors.descriptor import TableDescriptor
from ..catalog.rights.privileges import Privilege
from ..catalog.values.errors import SQLError
from ..changefeed.sinks.duckdb import MirrorSources
from ..sql import Services


async def check_mirror(services: Services, user: str, mirror: str, sources: MirrorSources) -> None:
    """Raises SQLError 42501. Tables that were dropped, and those that no changefeed made, are for
    admins alone: nobody has been granted them."""
    rights = services.rights.current
    if rights.admin(user):
        return
    if sources.others:
        raise refused(user, mirror)
    at = await services.store.now()
    for table_id in sources.table_ids:
        table = await services.catalog.descriptors.read_at(table_id, at)
        if not isinstance(table, TableDescriptor) or table.dropped:
            raise refused(user, mirror)
        if not services.rights.current.allow(user, table, Privilege.SELECT):
            raise refused(user, mirror)


def refused(user: str, mirror: str) -> SQLError:
    """Says the same of a mirror that does not exist, and names no table."""
    return SQLError(
        "42501",
        f"user {user} may not read mirror {mirror}",
        detail="It takes SELECT on every table whose rows the mirror's file holds.",
    )
