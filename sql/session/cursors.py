"""SQL cursors: DECLARE, FETCH, MOVE and CLOSE.

A cursor shows the rows of its query as they were when it was declared. They come in batches while
FETCH goes forward, and those that were fetched are gone.

It ends with its transaction, by COMMIT or not, and where ROLLBACK TO takes its DECLARE back; one
that was declared WITH HOLD outlives the commit.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ..execute.query.duckdb import BATCH_ROWS
from ..results.result_batches import ResultBatches, ResultsOfUser
from ..results.results import Result, ResultColumn, arrow_schema
from ..runtime.transactions import OpenTransaction
from ..syntax import transaction_statements as s

CURSORS_MAX = 100
"""Cursors of one session: each holds a result."""


@dataclass(slots=True, eq=False)
class _Declared:
    """A cursor, and the rows of its query's result that are still to be fetched."""

    statement: s.DeclareCursor
    result: Result
    rows: ForwardRows
    opened: OpenTransaction | None  # None of one WITH HOLD that was declared by itself
    transaction: Transaction | None
    savepoint: int = 0  # the last that was made before it
    fetched: ResultBatches | None = None  # of a FETCH that its client has perhaps not read yet


class RunText(Protocol):
    """The result of a query's text."""

    async def __call__(
        self, text: str, parameters: Sequence[object], *, streamed: bool
    ) -> Result: ...


class Cursors:
    """A session's cursors, by name.

    `opened` returns its open transaction, and `run` runs queries.
    """

    def __init__(
        self, opened: Callable[[], OpenTransaction | None], run: RunText, waiting: ResultsOfUser
    ) -> None:
        self._declared: dict[str, _Declared] = {}
        self._opened = opened
        self._run = run
        self._waiting = waiting

    async def run(
        self, statement: s.CursorStatement, parameters: Sequence[object], *, streamed: bool
    ) -> Result:
        """Carries a statement out. If `streamed`, a FETCH may return batches."""
        await self.forget_ended()
        match statement:
            case s.DeclareCursor():
                return await self._declare(statement, parameters)
            case s.FetchCursor():
                return await self._fetch(statement, streamed=streamed)
            case s.CloseCursor(name=name, position=position):
                await self._end(self._find(name, position))
                return Result(tag="CLOSE CURSOR")

    async def _declare(self, statement: s.DeclareCursor, parameters: Sequence[object]) -> Result:
        """Runs the query. Raises SQLError 25P01 where the cursor would end at once."""
        opened = self._opened()
        if opened is None and not statement.hold:
            raise SQLError(
                "25P01",
                "DECLARE CURSOR can only be used in transaction blocks",
                hint="Write it behind BEGIN, or declare it WITH HOLD.",
                position=statement.position,
            )
        if statement.name in self._declared:
            raise SQLError(
                "42P03", f'cursor "{statement.name}" already exists', position=statement.position
            )
        if len(self._declared) >= CURSORS_MAX:
            raise SQLError("53400", f"a session has at most {CURSORS_MAX} cursors")
        transaction = None if opened is None else opened.transaction
        found = await self._run(statement.text, parameters, streamed=True)
        cursor = _Declared(statement, found, ForwardRows(found), opened, transaction)
        cursor.savepoint = 0 if opened is None else opened.savepoints_made
        self._declared[statement.name] = cursor
        return Result(tag="DECLARE CURSOR")

    def columns(self, name: str) -> tuple[ResultColumn, ...]:
        """Returns the columns of FETCH. Raises SQLError 34000."""
        return self._find(name, None).result.columns

    async def close_all(self) -> None:
        for cursor in list(self._declared.values()):
            await self._end(cursor)

    async def _end(self, cursor: _Declared) -> None:
        del self._declared[cursor.statement.name]
        await cursor.result.close()

    async def _fetch(self, statement: s.FetchCursor, *, streamed: bool) -> Result:
        """The rows asked for, in batches where they are many. Raises SQLError 34000, 55000."""
        cursor = self._find(statement.name, statement.position)
        if cursor.fetched is not None:
            await cursor.fetched.settle()  # what was asked for first is taken first
            cursor.fetched = None
        rows, columns = cursor.rows, cursor.result.columns
        wanted, skipped = _ahead(statement, rows)
        async for _ in rows.take(skipped):
            pass
        many = cursor.result.batches is not None and (wanted is None or wanted > BATCH_ROWS)
        if streamed and many and not statement.moves:
            batches = ResultBatches((), rows.take(wanted), self._waiting)
            cursor.fetched = batches
            return Result(tag="FETCH", columns=columns, batches=batches)
        parts: list[pa.Table] = []
        count = 0
        async for part in rows.take(wanted):
            count += part.num_rows
            if not statement.moves:
                parts.append(part)
        if statement.moves:
            return Result(tag=f"MOVE {count}", row_count=count)
        table = pa.concat_tables(parts) if parts else arrow_schema(columns).empty_table()
        return Result(tag=f"FETCH {count}", columns=columns, table=table, row_count=count)

    def _find(self, name: str, position: int | None) -> _Declared:
        found = self._declared.get(name)
        if found is None or not _lives(found, self._opened()):
            raise SQLError("34000", f'cursor "{name}" does not exist', position=position)
        return found

    @property
    def declared(self) -> bool:
        """Whether there are any, which `forget_ended` may find to have ended."""
        return bool(self._declared)

    async def forget_ended(self) -> None:
        """Cursors whose transaction is over, has begun anew, or went back to a savepoint before
        them, are no more."""
        opened = self._opened()
        undone = None if opened is None else opened.take_undone()
        for cursor in list(self._declared.values()):
            taken_back = (
                undone is not None and cursor.opened is opened and cursor.savepoint >= undone
            )
            if taken_back or not _lives(cursor, opened):
                await self._end(cursor)


def _ahead(statement: s.FetchCursor, rows: ForwardRows) -> tuple[int | None, int]:
    """Returns how many rows to fetch, and how many to skip before them. Raises SQLError 55000 for
    rows that are not ahead."""
    count = statement.count
    if count is None:
        return None, 0
    if statement.absolute:
        count -= rows.taken + rows.ended
    if count < 1:
        raise SQLError(
            "55000",
            "cursor can only scan forward",
            hint="Declare it again to begin anew; ORDER BY … DESC reads from the end.",
        )
    return (1, count - 1) if statement.absolute else (count, 0)


def _lives(cursor: _Declared, opened: OpenTransaction | None) -> bool:
    if cursor.opened is None:
        return True
    if cursor.opened.transaction is not cursor.transaction:
        return False
    if cursor.opened is opened:
        return True
    return cursor.statement.hold and cursor.opened.committed_at is not None


class ForwardRows:
    """The rows of a result, once each. `taken` counts those that were given; `ended` says that a
    taker came to the end."""

    def __init__(self, result: Result) -> None:
        self.taken = 0
        self.ended = False
        self._batches = result.batches
        self._left = result.fetch_arrow() if result.batches is None else None

    async def take(self, count: int | None) -> AsyncGenerator[pa.Table, None]:
        """The next `count` rows, or all for None, in parts. What is not taken of it stays."""
        while count is None or count > 0:
            part, self._left = self._left, None
            if part is None and self._batches is not None:
                part = await self._batches.next()
            if part is None:
                self.ended = True
                return
            if count is not None and part.num_rows > count:
                part, self._left = part.slice(0, count), part.slice(count)
            if count is not None:
                count -= part.num_rows
            self.taken += part.num_rows
            yield part
