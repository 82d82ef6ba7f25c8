"""Ends of temporary tables: with their session, and with a node."""

from __future__ import annotations

from ...catalog.descriptors.temporary_schema import TemporarySchema, follow, session_schema
from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ...kvlayer.errors import KVError
from ..execute.catalog_statements import change_catalog
from ..runtime.services import Services
from ..syntax.schema_statements import DropSchema


async def drop_all(services: Services, own: TemporarySchema) -> None:
    """Drops the temporary tables of a session. Raises SQLError and KVError."""
    await drop_schemas(services, [(database, own.name) for database in sorted(own.databases)])
    own.databases.clear()


async def drop_schemas(services: Services, schemas: list[tuple[str, str]]) -> None:
    """Drops temporary schemas, by database and name, with all that is in them."""
    before = session_schema()
    try:
        for database, name in schemas:
            follow(TemporarySchema(name))
            drop = DropSchema(name=name, if_exists=True, cascade=True, position=1)
            try:
                await change_catalog(services, drop, None, database, ROOT)
            except SQLError as error:
                if error.sqlstate != "3D000":  # the database was dropped with all that was in it
                    raise
    finally:
        follow(before)


async def sweep(services: Services, orphans: list[tuple[str, str]]) -> None:
    """Drops what sessions left that died with their node. What cannot be dropped now is found again
    when the node starts again."""
    try:
        await drop_schemas(services, orphans)
    except (KVError, SQLError):
        services.store.metrics.add("sql_temporary_schemas_left_total")
