"""INSERT, UPSERT, UPDATE and DELETE.

By themselves, statements whose reads are all of known keys run in one phase: their rows are
computed before, and checks and writes happen in one step. Every other statement runs in a
transaction, its own or the session's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...catalog.column_types import Datum
from ...catalog.errors import SQLError
from ...catalog.row_codec import RowCodec
from ...kvlayer.clock import Timestamp
from ...kvlayer.txn import Evaluation, Transaction
from ..parser.statements import InsertMode
from ..plans import DeletePlan, InsertPlan, Projection, RowFinder, UpdatePlan
from ..predicates import bind_predicates
from ..results import Result, Row
from ..scalars import Bindings
from .duckdb import Analytics
from .mutations import Mutation, lock_first, moved
from .reading import KeyedRow, read_rows, run_analytic, run_select

ONE_PHASE_ROWS_MAX = 2000
"""Rows that one step writes: more go in slices, as intents."""

SLICE_ROWS = 1000
"""Rows of a query's result that are encoded before the loop gets a turn."""

DML = InsertPlan | UpdatePlan | DeletePlan


@dataclass(frozen=True, slots=True)
class Written:
    """What a statement wrote: the rows that RETURNING is about, and how many there were."""

    rows: Sequence[Row]
    count: int


def one_phase_applies(plan: DML) -> bool:
    """Whether the statement, alone, can be carried out in the evaluating step."""
    match plan:
        case InsertPlan():
            return plan.query is None and len(plan.rows) <= ONE_PHASE_ROWS_MAX
        case UpdatePlan():
            return _by_keys(plan.finder) and all(a.scalar is not None for a in plan.assignments)
        case DeletePlan():
            return _by_keys(plan.finder)


def _by_keys(finder: RowFinder) -> bool:
    return finder.access is not None and finder.access.points


# In one phase


class OnePhase:
    """A statement prepared for `Store.one_phase`: `evaluate` may run more than once."""

    def __init__(self, plan: DML, bindings: Bindings) -> None:
        self._plan = plan
        self._bindings = bindings
        self._insertion: Mutation | None = None
        self._keys: list[bytes] = []
        if isinstance(plan, InsertPlan):
            self._insertion = _values_mutation(plan, bindings)
        else:
            assert plan.finder.access is not None, plan
            self._keys = plan.finder.access.keys(bindings)

    def evaluate(self, evaluation: Evaluation) -> Written:
        plan = self._plan
        if isinstance(plan, InsertPlan):
            mutation = self._insertion
            assert mutation is not None, plan
            mutation.apply(evaluation)
            return _written(plan, mutation)
        codec = plan.finder.codec
        rows = [
            (key, codec.decode_row(key, body))
            for key in self._keys
            if (body := evaluation.get(key)) is not None
        ]
        rows = _matching(plan.finder, rows, self._bindings)
        mutation, written = _changed(plan, rows, self._bindings)
        mutation.apply(evaluation)
        return written


def _values_mutation(plan: InsertPlan, bindings: Bindings) -> Mutation:
    encode = plan.codec.encode_row
    mutation = Mutation(plan.codec)
    for row in plan.rows:
        # encode_row converts each value to its column's type, and says which one it is not of.
        key, body = encode([scalar.evaluate((), bindings) for scalar in row])  # type: ignore[misc]
        mutation.keys.append(key)
        mutation.bodies.append(body)
    _finish_insert(plan, mutation)
    return mutation


def _finish_insert(plan: InsertPlan, mutation: Mutation) -> None:
    if plan.mode is InsertMode.UPSERT:
        mutation.keep_last()
    else:
        mutation.check_distinct()
        mutation.absent = mutation.keys


def _written(plan: InsertPlan, mutation: Mutation) -> Written:
    if not plan.returning.columns:
        return Written((), len(mutation.keys))
    decode = plan.codec.decode_row
    pairs = zip(mutation.keys, mutation.bodies, strict=True)
    return Written([decode(key, body) for key, body in pairs], len(mutation.keys))


# In a transaction


async def run_in(
    plan: DML, transaction: Transaction, bindings: Bindings, analytics: Analytics
) -> Written:
    """Carries the statement out in a transaction, and does not commit it."""
    if isinstance(plan, InsertPlan):
        mutation = await _insertion(plan, transaction, bindings, analytics)
        await mutation.apply_in(transaction)
        return _written(plan, mutation)
    rows, computed = await _find(plan.finder, transaction, bindings, analytics)
    mutation, written = _changed(plan, rows, bindings, computed)
    await mutation.apply_in(transaction)
    return written


async def _insertion(
    plan: InsertPlan, transaction: Transaction, bindings: Bindings, analytics: Analytics
) -> Mutation:
    if plan.query is None:
        return _values_mutation(plan, bindings)
    found = (await run_select(plan.query, transaction, bindings, analytics)).fetch_arrow()
    if found.num_columns != len(plan.targets):
        more = "expressions" if found.num_columns > len(plan.targets) else "target columns"
        less = "target columns" if more == "expressions" else "expressions"
        raise SQLError("42601", f"INSERT has more {more} than {less}")
    descriptor = plan.descriptor
    named = found.rename_columns([descriptor.visible_columns[place].name for place in plan.targets])
    mutation = Mutation(plan.codec)
    for batch in named.to_batches(max_chunksize=SLICE_ROWS):
        keys, bodies = plan.codec.encode_columns(batch)
        mutation.keys += keys
        mutation.bodies += bodies
        await asyncio.sleep(0)
    _finish_insert(plan, mutation)
    return mutation


async def _find(
    finder: RowFinder, transaction: Transaction, bindings: Bindings, analytics: Analytics
) -> tuple[list[KeyedRow], Sequence[Row]]:
    """The rows, and for each the values that DuckDB computed for it."""
    if finder.access is not None:
        rows: list[KeyedRow] = []
        if finder.access.points:
            await lock_first(transaction, finder.access.keys(bindings))
        async for chunk in read_rows(
            finder.access, finder.codec, transaction, bindings, bounded=False
        ):
            rows += chunk
        return _matching(finder, rows, bindings), ()
    assert finder.analytic is not None, finder
    answer = await run_analytic(finder.analytic, transaction, bindings, analytics)
    width = len(finder.descriptor.visible_columns)
    found = _rows_of(answer.table)
    encode_key = finder.codec.encode_key
    places = _key_places(finder.codec)
    keyed = [(encode_key([row[place] for place in places]), row[:width]) for row in found]
    return keyed, [row[width:] for row in found]


def _rows_of(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


def _key_places(codec: RowCodec) -> list[int]:
    columns = codec.descriptor.visible_columns
    return [columns.index(column) for column in codec.descriptor.key_columns]


def _matching(finder: RowFinder, rows: list[KeyedRow], bindings: Bindings) -> list[KeyedRow]:
    if not finder.predicates:
        return rows
    test = bind_predicates(finder.predicates, bindings)
    return [pair for pair in rows if test(pair[1])]


def _changed(
    plan: UpdatePlan | DeletePlan,
    rows: Sequence[KeyedRow],
    bindings: Bindings,
    computed: Sequence[Row] = (),
) -> tuple[Mutation, Written]:
    """What becomes of the rows that were found."""
    codec = plan.finder.codec
    old = [key for key, _ in rows]
    if isinstance(plan, DeletePlan):
        kept = [row for _, row in rows] if plan.returning.columns else []
        return Mutation(codec, deletes=old), Written(kept, len(rows))
    keys: list[bytes] = []
    bodies: list[bytes] = []
    for number, (_, row) in enumerate(rows):
        values: list[Datum] = list(row)
        for assignment in plan.assignments:
            if assignment.scalar is not None:
                value = assignment.scalar.evaluate(row, bindings)
            else:
                assert assignment.computed is not None, assignment
                value = computed[number][assignment.computed]
            values[assignment.place] = value  # type: ignore[call-overload]
        key, body = codec.encode_row(values)
        keys.append(key)
        bodies.append(body)
    if plan.moves_keys:
        mutation = moved(codec, old, keys, bodies)
    else:
        mutation = Mutation(codec, keys=keys, bodies=bodies)
    new: list[Row] = []
    if plan.returning.columns:
        new = [codec.decode_row(key, body) for key, body in zip(keys, bodies, strict=True)]
    return mutation, Written(new, len(rows))


# Results


def result_of(
    plan: DML, written: Written, bindings: Bindings, committed_at: Timestamp | None
) -> Result:
    """The result of a statement, RETURNING evaluated."""
    count = written.count
    match plan:
        case InsertPlan():
            tag = f"INSERT 0 {count}"
        case UpdatePlan():
            tag = f"UPDATE {count}"
        case DeletePlan():
            tag = f"DELETE {count}"
    if not plan.returning.columns:
        return Result(tag=tag, row_count=count, commit_timestamp=committed_at)
    rows = _returned(plan.returning, written.rows, bindings)
    return Result(
        tag=tag,
        columns=plan.returning.columns,
        rows=rows,
        row_count=count,
        commit_timestamp=committed_at,
    )


def _returned(returning: Projection, rows: Sequence[Row], bindings: Bindings) -> list[Row]:
    return [
        tuple(scalar.evaluate(row, bindings) for scalar in returning.scalars)  # type: ignore[misc]
        for row in rows
    ]
