"""SELECT … FOR UPDATE and FOR SHARE: rows that stay as they were shown.

What is read before the locks are held proves nothing, so the query runs, its rows are locked, and
where that moved the transaction up to newer rows it runs again, until it shows what is locked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from itertools import chain, islice

from msgspec.structs import replace

from ....catalog.rows.row_codec import codec_for
from ....kvlayer.errors import LockUnavailable, RetryableTransaction
from ....kvlayer.span import Span
from ....kvlayer.transaction_modes import WhenLocked
from ....kvlayer.txn import Transaction
from ...access.key_access import TooManyRows
from ...analyze.given_tables import is_virtual
from ...analyze.predicates import bind_predicates
from ...analyze.scalars import Bindings
from ...plan.plans import LockingPlan, NativeSelect, SelectPlan
from ...results.errors import lock_unavailable
from ...results.results import Answer, Result, Row, selected
from .reading import KeyedRow, cut, read_points, read_rows, run_analytic, shown, spans_of

PORTION_ROWS = 250
"""Rows whose keys are made, or locked, in one step of the loop: each takes 2 to 15 µs."""

ROUNDS_MAX = 20
"""Times that the query is run. Each round but the last found rows that had changed or come since
the one before: so many rounds mean that they change faster than they can be locked."""


SPARE_ROWS = 64
"""Rows beyond LIMIT that SKIP LOCKED looks at first; four times as many in each round that finds
too few of them free. A queue that is long costs a worker no more than those that others hold."""


@dataclass(slots=True)
class _Found:
    """The rows of a round: `keys[i]` are the i-th row's keys, one a locked table (None: no row).

    `read` are the keys of the rows that were looked at by a native query, and `ends` says that
    there are no rows behind them.
    """

    keys: list[tuple[bytes | None, ...]]
    rows: list[Row]
    answer: Answer | None
    read: list[bytes] = field(default_factory=list)
    ends: bool = True


async def run_locking(plan: SelectPlan, transaction: Transaction, bindings: Bindings) -> Result:
    """The rows of a locking query, locked. Raises SQLError 55P03 where it may not wait."""
    assert plan.locking is not None, plan
    seeing = replace(bindings, when_locked=plan.locking.when_locked)
    locking = _Locking(plan, plan.locking, transaction, seeing)
    try:
        try:
            return await locking.run()
        except TooManyRows:  # of an array; nothing is locked yet
            return await replaced(locking, plan=replaced(plan, native=None)).run()
    except LockUnavailable as error:
        raise lock_unavailable(error, [table.name for table in plan.locking.tables]) from error


@dataclass(frozen=True, slots=True)
class _Locking:
    """A locking query under way."""

    plan: SelectPlan
    locking: LockingPlan
    transaction: Transaction
    bindings: Bindings

    @property
    def skips(self) -> bool:
        return self.locking.when_locked is WhenLocked.SKIP

    async def run(self) -> Result:
        transaction, native, spare = self.transaction, self.plan.native, SPARE_ROWS
        for _ in range(ROUNDS_MAX):
            with transaction.tracking(False):
                found = await (self._find() if native is None else self._find_native(native, spare))
            at = transaction.read_timestamp
            taken = await self._take(found)
            if transaction.read_timestamp != at:
                continue
            if found.ends or len(taken) == self._wanted:
                self._track(found, taken)
                return self._result(found, taken)
            spare *= 4
        raise RetryableTransaction("the rows to lock were changed again and again")

    async def _find(self) -> _Found:
        tables = self.locking.tables
        answer = await run_analytic(self.locking.analytic, self.transaction, self.bindings)
        counts = [len(table.key_columns) for table in tables]
        encoders = [codec_for(table).encode_key for table in tables]
        width = answer.table.num_columns - sum(counts)
        last = answer.table.select(range(width, answer.table.num_columns))
        keys: list[tuple[bytes | None, ...]] = []
        for batch in last.to_batches(max_chunksize=PORTION_ROWS):
            columns = iter([column.to_pylist() for column in batch.columns])
            by_table: list[list[bytes | None]] = []
            for encode, count in zip(encoders, counts, strict=True):
                rows = zip(*islice(columns, count), strict=True)
                by_table.append([None if None in values else encode(values) for values in rows])
            keys += zip(*by_table, strict=True)
            await asyncio.sleep(0)
        shown = Answer(answer.columns[:width], answer.table.select(range(width)))
        return _Found(keys, [()] * len(keys), shown)

    @property
    def _wanted(self) -> int | None:
        """The number of rows that LIMIT leaves; None without one."""
        limits = self.plan.native or self.locking
        chosen = cut(limits.limit, limits.offset, self.bindings)
        return None if chosen.stop is None else chosen.stop - (chosen.start or 0)

    async def _find_native(self, native: NativeSelect, spare: int) -> _Found:
        """The rows of a native query. Where some may be locked and skipped, `spare` are looked at
        beyond those that LIMIT and OFFSET ask for."""
        bindings = self.bindings
        test = bind_predicates(native.predicates, bindings) if native.predicates else None
        wanted = cut(native.limit, native.offset, bindings).stop
        if self.skips and wanted is not None:
            wanted += spare
        found = _Found([], [], None)

        def note(pairs: Sequence[KeyedRow]) -> None:
            found.read += [key for key, _ in pairs]
            for key, row in pairs:
                if test is None or test(row):
                    found.keys.append((key,))
                    found.rows.append(row)

        if native.access.points:
            # A known key is locked before it is looked at: then nothing of it can be out of date.
            keys = await self._locked(native.access.keys(bindings))
            keys = keys[::-1] if native.reverse else keys
            note(await read_points(native.access.descriptor, keys, self.transaction))
            return found
        async for pairs in read_rows(
            native.access,
            self.transaction,
            bindings,
            covered=native.covered,
            reverse=native.reverse,
            wanted=wanted,
            bounded=False,
        ):
            note(pairs)
            if wanted is not None and len(found.rows) >= wanted:
                found.ends = not self.skips
                break
        return found

    async def _take(self, found: _Found) -> Sequence[int]:
        """Locks the rows found, in their order, and says which of them are the result."""
        native, locking = self.plan.native, self.locking
        if not self.skips:
            for start in range(0, len(found.keys), PORTION_ROWS):
                if start:  # few rows are one step, which a client may be answered in
                    await asyncio.sleep(0)
                portion = found.keys[start : start + PORTION_ROWS]
                await self._lock(chain(*portion))
            every = range(len(found.keys))
            if native is None:
                return every  # DuckDB has applied the limit
            return every[cut(native.limit, native.offset, self.bindings)]
        limits = native or locking
        chosen = cut(limits.limit, limits.offset, self.bindings)
        taken: list[int] = []
        for number, row in enumerate(found.keys):
            if chosen.stop is not None and len(taken) >= chosen.stop:
                break
            if await self._lock(row):
                taken.append(number)
            if number % PORTION_ROWS == PORTION_ROWS - 1:
                await asyncio.sleep(0)
        return taken[chosen]

    async def _lock(self, keys: Iterable[bytes | None]) -> bool:
        """Locks keys; returns whether none was skipped, which may leave others locked."""
        wanted = [key for key in dict.fromkeys(keys) if key is not None]
        return len(await self._locked(wanted)) == len(wanted)

    async def _locked(self, keys: Sequence[bytes]) -> list[bytes]:
        """Locks keys, and returns those that were not skipped."""
        mode, when_locked = self.locking.mode, self.locking.when_locked
        return await self.transaction.lock(keys, mode=mode, when_locked=when_locked)

    def _track(self, found: _Found, taken: Sequence[int]) -> None:
        """Tracks the spans that a serializable transaction has read. SKIP LOCKED gives no
        consistent view, so that only the rows themselves are tracked."""
        track, native = self.transaction.track_read, self.plan.native
        if self.skips:
            for number in taken:
                for key in found.keys[number]:
                    if key is not None:
                        track(Span.point(key))
            return
        if native is not None:
            for span in native.access.spans(self.bindings):
                track(span)
            for key in found.read if native.access.secondary and not native.covered else ():
                track(Span.point(key))
            return
        for scan in self.plan.analytic.scans:
            if is_virtual(scan.descriptor):
                continue  # its rows are made for the statement, and have no keys
            access, primary = scan.access, scan.descriptor.primary_span
            spans = None if access is None else spans_of(access, self.bindings)
            for span in spans or ():
                track(span)
            if access is None or spans is None or (access.secondary and not scan.covered):
                track(primary)

    def _result(self, found: _Found, taken: Sequence[int]) -> Result:
        if self.plan.native is not None:
            return shown(self.plan.native, [found.rows[number] for number in taken])
        assert found.answer is not None, self.plan
        table = found.answer.table
        if len(taken) < table.num_rows:
            table = table.take(list(taken)) if taken else table.slice(0, 0)
        return selected(found.answer.columns, table)
