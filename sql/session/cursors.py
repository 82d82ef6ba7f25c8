"""SQL cursors: DECLARE, FETCH, MOVE and CLOSE.

A cursor shows the rows of its query as they were when it was declared, and has a place among them:

    before the first   0
    on the n-th        n
    behind the last    one more than there are

It ends with its transaction, by COMMIT or not, and where ROLLBACK TO takes its DECLARE back; one
that was declared WITH HOLD outlives the commit.

One that goes both ways (SCROLL) holds all its rows. Of any other the rows come in batches while
FETCH goes forward, and those that were fetched are gone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
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
    """A cursor. `result` has its rows, unless they come in batches."""

    statement: s.DeclareCursor
    result: Result
    opened: OpenTransaction | None  # None of one WITH HOLD that was declared by itself
    transaction: Transaction | None
    savepoint: int = 0  # the last that was made before it
    place: int = 0
    rows: ForwardRows | None = None  # of one whose rows come in batches
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
        self,
        opened: Callable[[], OpenTransaction | None],
        run: RunText,
        waiting: ResultsOfUser,
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
        found = await self._run(statement.text, parameters, streamed=statement.scroll is not True)
        cursor = _Declared(statement, found, opened, transaction)
        cursor.savepoint = 0 if opened is None else opened.savepoints_made
        if found.batches is not None:
            cursor.rows = ForwardRows(found.batches)
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
        """The rows asked for, the place being moved. Raises SQLError 34000, 55000."""
        cursor = self._find(statement.name, statement.position)
        if cursor.fetched is not None:
            await cursor.fetched.settle()  # what was asked for first is taken first
            cursor.fetched = None
        if cursor.rows is not None:
            wanted, skipped = _ahead(statement, cursor.rows)
            async for _ in cursor.rows.take(skipped):
                pass
            asked = replace(statement, count=wanted)
            return await self._fetch_forward(asked, cursor, cursor.rows, streamed=streamed)
        first, last, place = _reached(statement, cursor.place, cursor.result.row_count)
        backward = statement.backward or place < cursor.place
        if backward and cursor.statement.scroll is False:
            raise _forward_only()
        count = max(0, last - first + 1)
        cursor.place = place
        if statement.moves:
            return Result(tag=f"MOVE {count}", row_count=count)
        return _rows(cursor.result, first, count, backward=statement.backward)

    async def _fetch_forward(
        self, statement: s.FetchCursor, cursor: _Declared, rows: ForwardRows, *, streamed: bool
    ) -> Result:
        """The next rows of a cursor whose rows come in batches."""
        columns = cursor.result.columns
        wanted = statement.count
        if streamed and not statement.moves and (wanted is None or wanted > BATCH_ROWS):
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
    rows that were fetched before, and for those that are counted from the end."""
    if not statement.single and not statement.backward:
        return statement.count, 0
    place = rows.taken + rows.ended
    if statement.single and statement.count is not None:
        behind = statement.count - (place if statement.origin is s.From.START else 0)
        if behind > 0:
            return 1, behind - 1
    raise _forward_only()


def _forward_only() -> SQLError:
    return SQLError(
        "55000",
        "cursor can only scan forward",
        hint="Declare it with SCROLL option to enable backward scan.",
    )


def _lives(cursor: _Declared, opened: OpenTransaction | None) -> bool:
    if cursor.opened is None:
        return True
    if cursor.opened.transaction is not cursor.transaction:
        return False
    if cursor.opened is opened:
        return True
    return cursor.statement.hold and cursor.opened.committed_at is not None


def _reached(statement: s.FetchCursor, place: int, count: int) -> tuple[int, int, int]:
    """The first and the last row of what is asked for (none where they cross), and the place that
    it leaves the cursor at."""
    wanted = statement.count
    if statement.single:
        assert wanted is not None, statement
        target = place + wanted
        if statement.origin is s.From.START:
            target = wanted if wanted >= 0 else count + 1 + wanted
        target = min(max(target, 0), count + 1)
        return (target, target, target) if 1 <= target <= count else (1, 0, target)
    if statement.backward:
        steps = place if wanted is None else min(-wanted, place)
        first = place - steps
        return max(first, 1), place - 1, first
    steps = count + 1 - place if wanted is None else min(wanted, count + 1 - place)
    last = place + steps
    return place + 1, min(last, count), last


def _rows(result: Result, first: int, count: int, *, backward: bool) -> Result:
    start = first - 1
    tag = f"FETCH {count}"
    if result.table is not None:
        part = result.table.slice(start, count)
        forward = Result(tag=tag, columns=result.columns, table=part, row_count=count)
        if not backward:
            return forward
        rows = forward.fetch_rows()
    else:
        rows = list((result.rows or ())[start : start + count])
    if backward:
        rows.reverse()
    return Result(tag=tag, columns=result.columns, rows=rows, row_count=count)


class ForwardRows:
    """The rows of `batches`. `taken` counts those that were given; `ended` says that a taker came
    to the end."""

    def __init__(self, batches: ResultBatches) -> None:
        self.taken = 0
        self.ended = False
        self._batches = batches
        self._left: pa.Table | None = None  # of the batch that was cut

    async def take(self, count: int | None) -> AsyncGenerator[pa.Table, None]:
        """The next `count` rows, or all for None, in parts. What is not taken of it stays."""
        while count is None or count > 0:
            part = self._left if self._left is not None else await self._batches.next()
            self._left = None
            if part is None:
                self.ended = True
                return
            if count is not None and part.num_rows > count:
                part, self._left = part.slice(0, count), part.slice(count)
            if count is not None:
                count -= part.num_rows
            self.taken += part.num_rows
            yield part
