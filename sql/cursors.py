"""SQL cursors: DECLARE, FETCH, MOVE and CLOSE.

A cursor holds the rows of its query as they were when it was declared, and a place among them:

    before the first   0
    on the n-th        n
    behind the last    one more than there are

It ends with its transaction, by COMMIT or not; one that was declared WITH HOLD outlives the commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ..catalog.errors import SQLError
from ..kvlayer.access import Transaction
from .parser.cursor_statements import CloseCursor, CursorStatement, DeclareCursor, FetchCursor, From
from .results import Result, ResultColumn
from .transactions import OpenTransaction

CURSORS_MAX = 100
"""Cursors of one session: each holds a result."""


@dataclass(slots=True, eq=False)
class _Declared:
    statement: DeclareCursor
    result: Result
    opened: OpenTransaction | None  # None of one WITH HOLD that was declared by itself
    transaction: Transaction | None
    place: int = 0

    @property
    def count(self) -> int:
        return self.result.row_count


class Cursors:
    """A session's cursors, by name.

    `opened` returns its open transaction, and `run` the result of a query's text.
    """

    def __init__(
        self,
        opened: Callable[[], OpenTransaction | None],
        run: Callable[[str, Sequence[object]], Awaitable[Result]],
    ) -> None:
        self._declared: dict[str, _Declared] = {}
        self._opened = opened
        self._run = run

    async def run(self, statement: CursorStatement, parameters: Sequence[object]) -> Result:
        match statement:
            case DeclareCursor():
                return await self._declare(statement, parameters)
            case FetchCursor():
                return self._fetch(statement)
            case CloseCursor(name=name, position=position):
                self._find(name, position)
                del self._declared[name]
                return Result(tag="CLOSE CURSOR")

    async def _declare(self, statement: DeclareCursor, parameters: Sequence[object]) -> Result:
        """Runs the query. Raises SQLError 25P01 where the cursor would end at once."""
        opened = self._opened()
        if opened is None and not statement.hold:
            raise SQLError(
                "25P01",
                "DECLARE CURSOR can only be used in transaction blocks",
                hint="Write it behind BEGIN, or declare it WITH HOLD.",
                position=statement.position,
            )
        self._forget_ended()
        if statement.name in self._declared:
            raise SQLError(
                "42P03", f'cursor "{statement.name}" already exists', position=statement.position
            )
        if len(self._declared) >= CURSORS_MAX:
            raise SQLError("53400", f"a session has at most {CURSORS_MAX} cursors")
        transaction = None if opened is None else opened.transaction
        found = await self._run(statement.text, parameters)
        self._declared[statement.name] = _Declared(statement, found, opened, transaction)
        return Result(tag="DECLARE CURSOR")

    def columns(self, name: str) -> tuple[ResultColumn, ...]:
        """What FETCH returns. Raises SQLError 34000."""
        return self._find(name, None).result.columns

    def close_all(self) -> None:
        self._declared.clear()

    def _fetch(self, statement: FetchCursor) -> Result:
        """The rows asked for, the place being moved. Raises SQLError 34000, 55000."""
        cursor = self._find(statement.name, statement.position)
        first, last, place = _reached(statement, cursor.place, cursor.count)
        backward = statement.backward or place < cursor.place
        if backward and not cursor.statement.scroll:
            raise SQLError(
                "55000",
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )
        cursor.place = place
        count = max(0, last - first + 1)
        if statement.moves:
            return Result(tag=f"MOVE {count}", row_count=count)
        return _rows(cursor.result, first, count, backward=statement.backward)

    def _find(self, name: str, position: int | None) -> _Declared:
        self._forget_ended()
        found = self._declared.get(name)
        if found is None:
            raise SQLError("34000", f'cursor "{name}" does not exist', position=position)
        return found

    def _forget_ended(self) -> None:
        """Cursors whose transaction is over, or has begun anew, are no more."""
        opened = self._opened()
        self._declared = {
            name: cursor for name, cursor in self._declared.items() if _lives(cursor, opened)
        }


def _lives(cursor: _Declared, opened: OpenTransaction | None) -> bool:
    if cursor.opened is None:
        return True
    if cursor.opened.transaction is not cursor.transaction:
        return False
    if cursor.opened is opened:
        return True
    return cursor.statement.hold and cursor.opened.committed_at is not None


def _reached(statement: FetchCursor, place: int, count: int) -> tuple[int, int, int]:
    """The first and the last row of what is asked for (none where they cross), and the place that
    it leaves the cursor at."""
    wanted = statement.count
    if statement.single:
        assert wanted is not None, statement
        target = place + wanted
        if statement.origin is From.START:
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
    if result.table is not None and not backward:
        part = result.table.slice(start, count)
        return Result(tag=tag, columns=result.columns, table=part, row_count=count)
    if result.table is not None:
        part = result.table.slice(start, count)
        rows = Result(tag=tag, columns=result.columns, table=part).fetch_rows()
    else:
        rows = list((result.rows or ())[start : start + count])
    if backward:
        rows.reverse()
    return Result(tag=tag, columns=result.columns, rows=rows, row_count=count)
