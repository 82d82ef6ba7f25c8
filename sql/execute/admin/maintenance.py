"""VACUUM, ANALYZE and their kin: accepted, because scripts send them, and told to be needless.

LOCK TABLE … IN ACCESS SHARE MODE, which pg_dump sends for each table, is not even told.
"""

from __future__ import annotations

from ....catalog.store.descriptor_store import DescriptorReader
from ...results.results import Result
from ...runtime.relations import resolve
from ...runtime.services import Services
from ...syntax.maintenance_statements import Chore, Maintain

NOTICES = {
    Chore.VACUUM: "VACUUM has nothing to do: old versions go by themselves, once gc.ttlseconds "
    "have passed",
    Chore.ANALYZE: "ANALYZE has nothing to do: plans need no statistics",
    Chore.REINDEX: "REINDEX has nothing to do: indexes do not bloat",
    Chore.CLUSTER: "CLUSTER has nothing to do: rows are kept in the order of their primary key",
    Chore.CHECKPOINT: "CHECKPOINT has nothing to do: what is committed is durable",
}


async def maintain(
    services: Services, statement: Maintain, reader: DescriptorReader, database: str
) -> Result:
    """Raises SQLError 42P01 for a table that is not there."""
    for table in statement.tables:
        await resolve(services, reader, table, database)
    return Result(tag=statement.chore.value, notice=NOTICES.get(statement.chore))
