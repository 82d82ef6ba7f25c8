"""Sessions whose database is a mirror: it is read in DuckDB's SQL, and never written."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from ...catalog.values.column_types import STRING
from ...catalog.values.errors import SQLError
from ...changefeed.sinks.duckdb.reading.read_statement import TEXT_BYTES_MAX
from ..execute.query.duckdb_statements import DuckDBStatement, duckdb_statements
from ..execute.run import Invocation
from ..parse import ParsedText
from ..results.client_types import DeclaredTypes
from ..results.results import ArrowQuery, Result, ResultColumn
from ..runtime.analytic_lanes import ANALYTICAL_TIMEOUT
from ..runtime.plan_cache import Prepared
from ..runtime.services import Services
from ..syntax import statements
from ..syntax.transaction_statements import TransactionStatement
from .prepared import PreparedStatement, statements_of
from .session import Session

Read = Callable[[str, Sequence[object], str], Awaitable[pa.Table]]
"""The rows of one query of the mirror, with its parameters, for a user. Raises SQLError."""

_OWN = TransactionStatement | statements.ShowSession | statements.Discard | statements.Deallocate
"""Statements about the session itself, which touch no rows."""

_OWN_WORDS = re.compile(
    r"\s*(abort|begin|close|commit|deallocate|discard|end|release|reset|rollback|savepoint|set|show"
    r"|start)\b",
    re.IGNORECASE,
)


class MirrorSession(Session):
    """A session of one mirror. Each query sees one state of it, as in READ COMMITTED.

    `read` reads the mirror, and judges who may. Nothing of the store is reached: every statement
    but the session's own is the mirror's.
    """

    def __init__(self, services: Services, *, database: str, user: str, read: Read) -> None:
        super().__init__(services, database=database, user=user)
        self._services = services
        self._read = read

    async def check(self) -> None:
        """Raises SQLError where the mirror is not there, or its user may not read it."""
        await self.run_apart("SELECT 1", partial(self._read, "SELECT 1", (), self.user))

    async def parse(self, text: str) -> list[PreparedStatement]:
        async with self._turn:
            if await self._own(text):
                return await statements_of(self._services, text)
            return [await self._of_piece(piece) for piece in _pieces(text)]

    async def _prepare(self, text: str, hints: DeclaredTypes) -> PreparedStatement:
        if await self._own(text):
            return await super()._prepare(text, hints)
        self._transactions.refuse_failed()
        pieces = _pieces(text)
        if len(pieces) > 1:
            raise SQLError("42601", "cannot insert multiple commands into a prepared statement")
        if not pieces:
            return PreparedStatement(text, Prepared(ParsedText((), 0)), 0, ())
        return await self._of_piece(pieces[0], hints)

    async def _of_piece(
        self, piece: DuckDBStatement, hints: DeclaredTypes = ()
    ) -> PreparedStatement:
        if await self._own(piece.text):
            (own,) = await statements_of(self._services, piece.text)
            return own
        count = piece.parameter_count
        known = [hint if isinstance(hint, type(STRING)) else STRING for hint in hints]
        types = [*known, *[STRING] * count][:count]
        prepared = Prepared(ParsedText((statements.ReadMirror(text=piece.text),), count))
        return PreparedStatement(piece.text, prepared, 0, tuple(types))

    async def _own(self, text: str) -> bool:
        if _OWN_WORDS.match(text) is None:
            return False
        try:
            parsed = await self._services.plans.reading(text)
        except SQLError:
            return False  # DuckDB has statements that begin with these words, too
        return all(isinstance(each, _OWN) for each in parsed.statements)

    async def _run(self, invocation: Invocation) -> Result:
        match invocation.statement:
            case statements.ReadMirror(text=text):
                self._transactions.refuse_failed()
                limit = self._services.store.settings.get(ANALYTICAL_TIMEOUT)
                async with self._transactions.time_limit(limit):
                    return await self._rows(text, invocation.parameters)
            case statement if isinstance(statement, _OWN):
                return await super()._run(invocation)
        raise SQLError(
            "25006",
            "a mirror is read-only, by SELECT",
            hint="Connect to a database of the store for other statements.",
        )

    async def _rows(self, text: str, parameters: Sequence[object]) -> Result:
        with _described_otherwise(text):
            found = await self._read(text, parameters, self.user)
        names = found.column_names  # which may repeat
        plain = found.rename_columns([f"c{place}" for place in range(len(names))])
        answer = await self._services.analytics.run(
            ArrowQuery("SELECT * FROM rows", {"rows": plain}, ())
        )
        columns = [
            ResultColumn(name, column.type)
            for name, column in zip(names, answer.columns, strict=True)
        ]
        count = answer.table.num_rows
        return Result(
            tag=f"SELECT {count}", columns=tuple(columns), table=answer.table, row_count=count
        )


def _pieces(text: str) -> list[DuckDBStatement]:
    """The statements of a text in DuckDB's SQL."""
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise SQLError("54000", f"a query of a mirror has at most {TEXT_BYTES_MAX} bytes")
    with _described_otherwise(text):
        return duckdb_statements(text)


@contextmanager
def _described_otherwise(text: str) -> Iterator[None]:
    r"""A failed query of PostgreSQL's catalogs, as psql sends for \d, hints at DuckDB's words."""
    try:
        yield
    except SQLError as error:
        if "pg_catalog." in text and error.hint is None:
            error.hint = "SHOW TABLES lists a mirror's tables, DESCRIBE … the columns of one."
        raise
