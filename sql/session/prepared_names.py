"""Prepared statements by name: those of PREPARE and those of the wire protocol are the same.

PREPARE find (INT8) AS SELECT note FROM t WHERE id = $1;
EXECUTE find (7);
DEALLOCATE find;
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ...catalog.values.column_types import ColumnType, coerce
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import CatalogName, TypeKind
from ..execute.query.result_shape import check_columns_same
from ..results.results import ClosedOnError, Result
from ..syntax import statements
from ..syntax.statement import at
from ..syntax.statements import Deallocate, ExecutePrepared, Prepare
from .prepared import PreparedStatement, Preparing

NAMES_MAX = 10_000
"""Prepared statements of one session: a client that never deallocates is told before it hurts."""

TEXT_MAX = 16 * 1024 * 1024
"""Characters of all of them: a plan holds several times what its text does."""

FREED_AT_ONCE = 4 * 1024
"""Characters of statements whose plans are taken apart in one step: about a millisecond's work."""

NamedStatement = Prepare | ExecutePrepared | Deallocate


class RunPrepared(Protocol):
    """Runs a prepared statement with its parameters."""

    def __call__(
        self, prepared: PreparedStatement, parameters: Sequence[object], *, streamed: bool
    ) -> Awaitable[Result]: ...


class PreparedNames:
    """One session's prepared statements, and the statements about them; `preparing` prepares and
    `run_prepared` runs for the session."""

    def __init__(self, preparing: Callable[[], Preparing], run_prepared: RunPrepared) -> None:
        self._preparing = preparing
        self._run_prepared = run_prepared
        self._by_name: dict[str, PreparedStatement] = {}
        self._length = 0
        """Characters of all named statements."""

    def check_new(self, name: str, text: str) -> None:
        """Raises SQLError 42P05 for a name that is taken, 53400 where there are too many, or what
        they say is too long."""
        if name in self._by_name:
            raise SQLError("42P05", f'prepared statement "{name}" already exists')
        if len(self._by_name) >= NAMES_MAX:
            raise SQLError(
                "53400",
                f"a session has at most {NAMES_MAX} prepared statements",
                hint="DEALLOCATE those that are not needed.",
            )
        if self._length + len(text) > TEXT_MAX:
            raise SQLError(
                "53400",
                f"prepared statements of a session have at most {TEXT_MAX} characters in all",
                hint="Send long statements without a name, or DEALLOCATE those that are not "
                "needed.",
            )

    def keep(self, name: str, statement: PreparedStatement) -> None:
        self.forget(name)
        self._length += len(statement.text) if name else 0
        self._by_name[name] = statement

    def find(self, name: str, position: int | None = None) -> PreparedStatement:
        """Raises SQLError 26000."""
        found = self._by_name.get(name)
        if found is None:
            shown = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise SQLError("26000", f"{shown} does not exist", position=position)
        return found

    def forget(self, name: str) -> None:
        """Forgets a name; one that is not there is none."""
        found = self._by_name.pop(name, None)
        if found is not None and name:
            self._length -= len(found.text)

    async def clear(self) -> None:
        """Forgets all of them, and lets others go on meanwhile: a long statement's plan is taken
        apart in milliseconds, and a session may have thousands."""
        freed = 0
        for name in tuple(self._by_name):
            freed += len(self._by_name[name].text) if name in self._by_name else 0
            self.forget(name)
            if freed >= FREED_AT_ONCE:
                freed = 0
                await asyncio.sleep(0)

    async def run(self, statement: NamedStatement, *, streamed: bool) -> Result:
        match statement:
            case statements.Prepare(name=name, text=text):
                hints = declared_types(statement)
                self.check_new(name, text)
                preparing = self._preparing()
                prepared = await preparing.prepare(text, hints)
                if prepared.planned:
                    await preparing.describe(prepared)  # EXECUTE is held to its columns
                self.keep(name, prepared)
                return Result(tag="PREPARE")
            case statements.ExecutePrepared():
                found = self.executed(statement)
                given = argument_values(statement, found)
                result = await self._run_prepared(found, given, streamed=streamed)
                async with ClosedOnError(result):
                    check_columns_same(found.columns, result.columns)
                return result
            case statements.Deallocate(name=None):
                await self.clear()
                return Result(tag="DEALLOCATE ALL")
            case statements.Deallocate(name=name):
                assert name is not None, statement
                self.find(name)
                self.forget(name)
                return Result(tag="DEALLOCATE")

    def executed(self, statement: statements.ExecutePrepared) -> PreparedStatement:
        """Returns the statement that an EXECUTE runs. Raises SQLError."""
        found = self.find(statement.name, statement.position)
        if not found.planned:
            raise SQLError(
                "0A000", "EXECUTE runs queries and writes alone", position=statement.position
            )
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)


def declared_types(statement: Prepare) -> list[ColumnType | None]:
    """The types that PREPARE declares: pg_dump does, `oid` among them."""
    types: list[ColumnType | None] = []
    for written in statement.types:
        if written.name == "oid":
            types.append(ColumnType(TypeKind.INT8, catalog_name=CatalogName.OID))
        else:
            with at(written.position):
                types.append(ColumnType.from_sql(written.name, written.arguments))
    return types


def argument_values(statement: ExecutePrepared, prepared: PreparedStatement) -> list[object]:
    """The values of EXECUTE's arguments. Raises SQLError."""
    wanted, found = len(prepared.parameter_types), len(statement.arguments)
    if wanted != found:
        raise SQLError(
            "42601",
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {wanted} parameters but got {found}.",
            position=statement.position,
        )
    # Python has no FLOAT4, and with a float the result would be one of FLOAT8.
    return [
        given if type.kind is TypeKind.FLOAT4 else coerce(type, given)
        for type, given in zip(prepared.parameter_types, statement.arguments, strict=True)
    ]
