"""PREPARE, EXECUTE and DEALLOCATE: the statements that a session knows by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess
from ..execute.query.result_shape import check_columns_same
from ..results.results import ClosedOnError, Result
from ..syntax import statements
from .prepared import PreparedStatement, Preparing
from .prepared_names import (
    NamedStatement,
    PreparedNames,
    argument_values,
    declared_types,
)


class RunPrepared(Protocol):
    """Runs a prepared statement with its parameters."""

    def __call__(
        self, prepared: PreparedStatement, parameters: Sequence[object], *, streamed: bool
    ) -> Awaitable[Result]: ...


class NamedStatements:
    """Carries out statements about `names`; `preparing` prepares and `run` runs for the session."""

    def __init__(
        self,
        names: PreparedNames,
        store: StoreAccess,
        preparing: Callable[[], Preparing],
        run: RunPrepared,
    ) -> None:
        self._names = names
        self._store = store
        self._preparing = preparing
        self._run = run

    async def run(self, statement: NamedStatement, *, streamed: bool) -> Result:
        names = self._names
        match statement:
            case statements.Prepare(name=name, text=text):
                hints = declared_types(statement)
                names.check_new(name, text)
                preparing = self._preparing()
                prepared = await preparing.prepare(text, hints)
                if prepared.planned:
                    await preparing.describe(prepared)  # EXECUTE is held to its columns
                names.keep(name, prepared, from_sql=True)
                return Result(tag="PREPARE")
            case statements.ExecutePrepared():
                found = self.executed(statement)
                given = argument_values(statement, found, await self._store.now())
                result = await self._run(found, given, streamed=streamed)
                if found.planned:
                    async with ClosedOnError(result):
                        check_columns_same(found.columns, result.columns)
                return result
            case statements.Deallocate(name=None):
                await names.clear()
                return Result(tag="DEALLOCATE ALL")
            case statements.Deallocate(name=name):
                assert name is not None, statement
                names.find(name)
                names.forget(name)
                return Result(tag="DEALLOCATE")

    def executed(self, statement: statements.ExecutePrepared) -> PreparedStatement:
        """Returns the statement that an EXECUTE runs. Raises SQLError."""
        found = self._names.find(statement.name, statement.position)
        if isinstance(found.statement, statements.ExecutePrepared):
            raise SQLError("0A000", "EXECUTE cannot run an EXECUTE", position=statement.position)
        return found
