"""Ends of temporary tables: with a transaction, with their session, and with a node."""

from __future__ import annotations

from ...catalog.descriptors.names import quote_identifier
from ...catalog.descriptors.temporary_schema import (
    TEMPORARY,
    TemporarySchema,
    follow,
    session_schema,
)
from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ...kvlayer.errors import KVError
from ..execute.catalog_statements import change_catalog
from ..parse import parse
from ..runtime.services import Services
from ..syntax.schema_statements import DropSchema
from ..syntax.statement import DDL, Statement
from ..syntax.statements import CreateTable, CreateTableAs, OnCommit, Query
from ..syntax.transaction_statements import TransactionStatement


class TemporaryTables:
    """A session's temporary tables. One that is ON COMMIT DELETE ROWS is empty, and one that is ON
    COMMIT DROP gone, whenever no transaction is open: only the session could see them otherwise."""

    def __init__(self, services: Services, schema: TemporarySchema) -> None:
        self._services = services
        self._schema = schema
        self._ending: dict[tuple[str, str], OnCommit] = {}
        self.touched = False
        """Whether something was done since `settle`."""

    def note(self, statement: Statement | None, database: str) -> None:
        """A statement has run; None for one that failed."""
        if isinstance(statement, Query):
            return
        if isinstance(statement, CreateTable | CreateTableAs) and statement.temporary is not None:
            self._ending[database, statement.table.parts[-1]] = statement.temporary
        if self._schema.name:
            self.touched = True
            if statement is None or isinstance(statement, DDL | TransactionStatement):
                self._schema.changes += 1

    async def settle(self) -> None:
        """No transaction is open any more."""
        self.touched = False
        for (database, name), ends in list(self._ending.items()):
            if ends is not OnCommit.PRESERVE:
                verb = "DROP TABLE IF EXISTS" if ends is OnCommit.DROP else "TRUNCATE"
                (statement,) = parse(f"{verb} {TEMPORARY}.{quote_identifier(name)}").statements
                assert isinstance(statement, DDL), statement
                try:  # as root: the session may act as another user by now than the table's owner
                    await change_catalog(self._services, statement, None, database, ROOT)
                    self._schema.changes += 1
                except SQLError as error:
                    if error.sqlstate != "42P01":  # it was dropped, or its transaction rolled back
                        raise
                    del self._ending[database, name]

    async def drop_all(self) -> None:
        """DISCARD TEMP, and the end of the session. Raises SQLError and KVError."""
        databases = sorted(self._schema.databases)
        await drop_schemas(self._services, [(name, self._schema.name) for name in databases])
        self._schema.databases.clear()
        self._ending.clear()
        self._schema.changes += 1


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
