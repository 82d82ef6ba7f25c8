"""SELECT … FOR UPDATE and FOR SHARE: rows that stay as they were shown.

What is read before the locks are held proves nothing, so the query runs, its rows are locked, and
where that moved the transaction up to newer rows it runs again, until it shows what is locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ....catalog.rows.row_codec import codec_for
from ....kvlayer.errors import LockUnavailable, RetryableTransaction
from ....kvlayer.span import Span
from ....kvlayer.transaction_modes import WhenLocked
from ....kvlayer.txn import Transaction
from ...access.predicates import bind_predicates
from ...analyze.scalars import Bindings
from ...analyze.virtual_ids import is_virtual
from ...plan.plans import LockedTable, LockingPlan, NativeSelect, SelectPlan
from ...results.errors import lock_unavailable
from ...results.query_evaluator import Answer
from ...results.results import Result, Row
from .reading import cut, read_rows, run_analytic, shown

ROUNDS_MAX = 20
"""Times that the query is run. Each round but the last found rows that had changed or come since
the one before: so many rounds mean that they change faster than they can be locked."""


@dataclass(slots=True)
class _Found:
    """The rows of a round: `keys[i]` are the i-th row's keys, one a locked table (None: no row).

    `read` are the keys of the rows that were looked at by a native query.
    """

    keys: list[tuple[bytes | None, ...]]
    rows: list[Row]
    answer: Answer | None
    read: list[bytes] = field(default_factory=list)


async def run_locking(plan: SelectPlan, transaction: Transaction, bindings: Bindings) -> Result:
    """The rows of a locking query, locked. Raises SQLError 55P03 where it may not wait."""
    locking = plan.locking
    assert locking is not None, plan
    try:
        for _ in range(ROUNDS_MAX):
            with transaction.tracking(False):
                found = await _find(plan, locking, transaction, bindings)
            at = transaction.read_timestamp
            taken = await _take(plan, locking, found, transaction, bindings)
            if transaction.read_timestamp == at:
                _track(plan, locking, found, taken, transaction, bindings)
                return await _result(plan, found, taken, bindings)
    except LockUnavailable as error:
        names = [table.descriptor.name for table in locking.tables]
        raise lock_unavailable(error, names) from error
    raise RetryableTransaction("the rows to lock were changed again and again")


async def _find(
    plan: SelectPlan, locking: LockingPlan, transaction: Transaction, bindings: Bindings
) -> _Found:
    if plan.native is not None:
        return await _find_native(plan.native, locking.tables[0], transaction, bindings)
    when_locked = max((table.when_locked for table in locking.tables), key=_IMPATIENCE.index)
    answer = await run_analytic(locking.analytic, transaction, bindings, when_locked=when_locked)
    width = answer.table.num_columns - sum(
        len(table.descriptor.key_columns) for table in locking.tables
    )
    by_table: list[list[bytes | None]] = []
    place = width
    for table in locking.tables:
        count = len(table.descriptor.key_columns)
        encode = codec_for(table.descriptor).encode_key
        columns = [answer.table.column(place + n).to_pylist() for n in range(count)]
        by_table.append(
            [None if None in values else encode(values) for values in zip(*columns, strict=True)]
        )
        place += count
    keys = list(zip(*by_table, strict=True))
    shown = Answer(answer.columns[:width], answer.table.select(range(width)))
    return _Found(keys, [()] * len(keys), shown)


_IMPATIENCE = (WhenLocked.WAIT, WhenLocked.SKIP, WhenLocked.NOWAIT)


async def _find_native(
    native: NativeSelect, table: LockedTable, transaction: Transaction, bindings: Bindings
) -> _Found:
    codec = codec_for(table.descriptor)
    test = bind_predicates(native.predicates, bindings) if native.predicates else None
    wanted = cut(native.limit, native.offset, bindings).stop
    if table.when_locked is WhenLocked.SKIP:
        wanted = None  # some of them may be locked
    found = _Found([], [], None)
    only = None
    if native.access.points:
        # A known key is locked before it is looked at: then nothing of it can be out of date.
        only = await transaction.lock(
            native.access.keys(bindings), mode=table.mode, when_locked=table.when_locked
        )
    async for pairs in read_rows(
        native.access,
        codec,
        transaction,
        bindings,
        covered=native.covered,
        reverse=native.reverse,
        wanted=wanted,
        bounded=False,
        when_locked=table.when_locked,
        only=only,
    ):
        found.read += [key for key, _ in pairs]
        for key, row in pairs:
            if test is None or test(row):
                found.keys.append((key,))
                found.rows.append(row)
        if wanted is not None and len(found.rows) >= wanted:
            break
    return found


async def _take(
    plan: SelectPlan,
    locking: LockingPlan,
    found: _Found,
    transaction: Transaction,
    bindings: Bindings,
) -> list[int]:
    """Locks the rows found, in their order, and says which of them are the result."""
    if not any(table.when_locked is WhenLocked.SKIP for table in locking.tables):
        for place, table in enumerate(locking.tables):
            column = [row[place] for row in found.keys]
            distinct = list(dict.fromkeys(key for key in column if key is not None))
            await transaction.lock(distinct, mode=table.mode, when_locked=table.when_locked)
        taken = list(range(len(found.keys)))
        if plan.native is None:
            return taken  # DuckDB has applied the limit
        return taken[cut(plan.native.limit, plan.native.offset, bindings)]
    limits = plan.native or locking
    wanted = cut(limits.limit, limits.offset, bindings).stop
    taken = []
    for number, keys in enumerate(found.keys):
        if wanted is not None and len(taken) >= wanted:
            break
        if await _lock_row(locking, keys, transaction):
            taken.append(number)
    return taken[cut(limits.limit, limits.offset, bindings)]


async def _lock_row(
    locking: LockingPlan, keys: Sequence[bytes | None], transaction: Transaction
) -> bool:
    """Whether all of a row's keys are locked. One that is skipped may leave others locked."""
    for key, table in zip(keys, locking.tables, strict=True):
        if key is not None and not await transaction.lock(
            (key,), mode=table.mode, when_locked=table.when_locked
        ):
            return False
    return True


def _track(
    plan: SelectPlan,
    locking: LockingPlan,
    found: _Found,
    taken: Sequence[int],
    transaction: Transaction,
    bindings: Bindings,
) -> None:
    """Tracks the spans that a serializable transaction has read. SKIP LOCKED gives no consistent
    view, so that only the rows themselves are tracked.
    """
    if any(table.when_locked is WhenLocked.SKIP for table in locking.tables):
        for number in taken:
            for key in found.keys[number]:
                if key is not None:
                    transaction.track_read(Span.point(key))
        return
    if plan.native is not None:
        access = plan.native.access
        for span in access.spans(bindings):
            transaction.track_read(span)
        for key in found.read if access.secondary and not plan.native.covered else ():
            transaction.track_read(Span.point(key))
        return
    for scan in plan.analytic.scans:
        if is_virtual(scan.descriptor):
            continue  # its rows are made for the statement, and have no keys
        access_of, primary = scan.access, scan.descriptor.primary_span
        whole = access_of is None or (access_of.secondary and not scan.covered)
        for span in [primary] if access_of is None else access_of.spans(bindings):
            transaction.track_read(span)
        if whole:
            transaction.track_read(primary)


async def _result(
    plan: SelectPlan, found: _Found, taken: Sequence[int], bindings: Bindings
) -> Result:
    tag = f"SELECT {len(taken)}"
    if plan.native is not None:
        return await shown(plan.native, [found.rows[number] for number in taken], bindings)
    assert found.answer is not None, plan
    table = found.answer.table.take(list(taken)) if taken else found.answer.table.slice(0, 0)
    return Result(tag=tag, columns=found.answer.columns, table=table, row_count=len(taken))
