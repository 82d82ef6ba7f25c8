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
from ..column_values import SlotValue
from ..parser.statements import InsertMode
from ..plans import DeletePlan, InsertPlan, Projection, RowFinder, UpdatePlan
from ..predicates import bind_predicates
from ..results import Result, Row
from ..row_batches import encode_batch
from ..row_rules import RowRules
from ..scalars import Bindings
from .cascades import write_in
from .conflicts import Collisions
from .duckdb import Analytics
from .foreign_keys import has_references
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
    if has_references(plan.descriptor):
        return False
    match plan:
        case InsertPlan():
            if plan.query is not None or len(plan.rows) > ONE_PHASE_ROWS_MAX:
                return False
            conflict = plan.conflict
            native = conflict is None or conflict.analytic is None
            return native and (conflict is None or RowRules.of(plan.descriptor).native)
        case UpdatePlan():
            native = RowRules.of(plan.finder.descriptor).native
            scalars = all(a.scalar is not None for a in plan.assignments)
            return native and scalars and _by_keys(plan.finder)
        case DeletePlan():
            return _by_keys(plan.finder)


def _by_keys(finder: RowFinder) -> bool:
    return finder.access is not None and finder.access.points


# In one phase


class OnePhase:
    """A statement prepared for `Store.one_phase`: `evaluate` may run more than once."""

    def __init__(self, plan: DML, bindings: Bindings, insertion: Mutation | None) -> None:
        self._plan = plan
        self._bindings = bindings
        self._insertion = insertion
        self._keys: list[bytes] = []
        if not isinstance(plan, InsertPlan):
            assert plan.finder.access is not None, plan
            self._keys = plan.finder.access.keys(bindings)

    @classmethod
    async def prepare(cls, plan: DML, bindings: Bindings, analytics: Analytics) -> OnePhase:
        """Computes all that needs no reading."""
        if isinstance(plan, InsertPlan):
            return cls(plan, bindings, await _values_mutation(plan, bindings, analytics))
        return cls(plan, bindings, None)

    def evaluate(self, evaluation: Evaluation) -> Written:
        plan = self._plan
        if isinstance(plan, InsertPlan):
            mutation = self._insertion
            assert mutation is not None, plan
            if plan.conflict is not None:
                collisions = Collisions(plan, mutation.keys, mutation.bodies)
                outcome = collisions.apply(evaluation, self._bindings)
                return Written(outcome.rows, outcome.count)
            mutation.apply(evaluation)
            return _written(plan, mutation)
        codec = plan.finder.codec
        rows = [
            (key, codec.decode_row(key, body))
            for key in self._keys
            if (body := evaluation.get(key)) is not None
        ]
        rows = _matching(plan.finder, rows, self._bindings)
        changed = _changed_rows(plan, rows, self._bindings)
        if isinstance(plan, UpdatePlan):
            changed = RowRules.of(plan.finder.descriptor).complete(changed, self._bindings)
        mutation, written = _mutated(plan, rows, changed)
        mutation.apply(evaluation)
        return written


async def _values_mutation(plan: InsertPlan, bindings: Bindings, analytics: Analytics) -> Mutation:
    # Values are converted to their columns' types later, which says which one it is not of.
    rows: Sequence[Row] = [
        tuple([scalar.evaluate((), bindings) for scalar in row])  # type: ignore[misc]
        for row in plan.rows
    ]
    rules = RowRules.of(plan.descriptor)
    if not rules.plain:
        rows = await rules.complete_all(rows, bindings, analytics)
    mutation = _encoded(rules, rows)
    _finish_insert(plan, mutation)
    return mutation


def _encoded(rules: RowRules, rows: Sequence[Row]) -> Mutation:
    """The puts of rows as they are written."""
    encode = rules.codec.encode_row
    mutation = Mutation(rules.codec, carried=rules.carried)
    for row in rows:
        key, body = encode(row)
        mutation.keys.append(key)
        mutation.bodies.append(body)
    return mutation


def _finish_insert(plan: InsertPlan, mutation: Mutation) -> None:
    if plan.conflict is not None:
        return  # what is proposed is not yet what is written
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
    mutation, written = await read_in(plan, transaction, bindings, analytics, set())
    await write_in(mutation, transaction, bindings, analytics)
    return written


async def read_in(
    plan: DML,
    transaction: Transaction,
    bindings: Bindings,
    analytics: Analytics,
    touched: set[bytes],
) -> tuple[Mutation, Written]:
    """What the statement is to write, and does not write yet.

    Rows in `touched` are left alone, as those that an earlier part of the statement changes; those
    that are found join them.
    """
    if isinstance(plan, InsertPlan):
        mutation = await _insertion(plan, transaction, bindings, analytics)
        if plan.conflict is not None:
            collisions = Collisions(plan, mutation.keys, mutation.bodies)
            outcome = await collisions.settle_in(transaction, bindings, analytics)
            return outcome.mutation, Written(outcome.rows, outcome.count)
        return mutation, _written(plan, mutation)
    rows, computed = await _find(plan.finder, transaction, bindings, analytics)
    if touched:
        kept = [number for number, (key, _) in enumerate(rows) if key not in touched]
        computed = [computed[number] for number in kept] if computed else computed
        rows = [rows[number] for number in kept]
    touched.update(key for key, _ in rows)
    changed = _changed_rows(plan, rows, bindings, computed)
    if isinstance(plan, UpdatePlan):
        changed = await RowRules.of(plan.finder.descriptor).complete_all(
            changed, bindings, analytics
        )
    others = plan.finder.others
    mutation, written = _mutated(plan, rows, changed)
    if not (others and plan.returning.columns):
        return mutation, written
    beside = [row[-others:] for row in computed]
    shown = [(*row, *values) for row, values in zip(written.rows, beside, strict=True)]
    return mutation, Written(shown, written.count)


async def _insertion(
    plan: InsertPlan, transaction: Transaction, bindings: Bindings, analytics: Analytics
) -> Mutation:
    if plan.query is None:
        return await _values_mutation(plan, bindings, analytics)
    found = (await run_select(plan.query, transaction, bindings, analytics)).fetch_arrow()
    targets = plan.targets if plan.named else plan.targets[: found.num_columns]
    if found.num_columns != len(targets):
        more = "expressions" if found.num_columns > len(plan.targets) else "target columns"
        less = "target columns" if more == "expressions" else "expressions"
        raise SQLError("42601", f"INSERT has more {more} than {less}")
    descriptor = plan.descriptor
    named = found.rename_columns([descriptor.visible_columns[place].name for place in targets])
    rules = RowRules.of(descriptor)
    mutation = Mutation(rules.codec, carried=rules.carried)
    for batch in named.to_batches(max_chunksize=SLICE_ROWS):
        keys, bodies = await encode_batch(rules, batch, bindings, analytics)
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
    keyed: dict[bytes, Row] = {}
    for row in found:
        keyed.setdefault(encode_key([row[place] for place in places]), row)
    rows = [(key, row[:width]) for key, row in keyed.items()]
    return rows, [row[width:] for row in keyed.values()]


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


def _changed_rows(
    plan: UpdatePlan | DeletePlan,
    rows: Sequence[KeyedRow],
    bindings: Bindings,
    computed: Sequence[Row] = (),
) -> Sequence[Row]:
    """The rows that were found, as an UPDATE leaves their visible columns; none of a DELETE."""
    if isinstance(plan, DeletePlan):
        return ()
    if not rows:
        # What is wrong with a number of the text is wrong whether there is a row or not.
        for scalar in [a.scalar for a in plan.assignments if a.scalar is not None]:
            if isinstance(scalar.evaluate, SlotValue):
                scalar.evaluate.check(bindings)
    changed: list[Row] = []
    for number, (_, row) in enumerate(rows):
        values: list[Datum] = list(row)
        for assignment in plan.assignments:
            if assignment.scalar is not None:
                value = assignment.scalar.evaluate(row, bindings)
            else:
                assert assignment.computed is not None, assignment
                value = computed[number][assignment.computed]
            values[assignment.place] = value  # type: ignore[call-overload]
        changed.append(tuple(values))
    return changed


def _mutated(
    plan: UpdatePlan | DeletePlan, rows: Sequence[KeyedRow], changed: Sequence[Row]
) -> tuple[Mutation, Written]:
    """What becomes of the rows that were found."""
    rules = RowRules.of(plan.finder.descriptor)
    old = [key for key, _ in rows]
    if isinstance(plan, DeletePlan):
        kept = [row for _, row in rows] if plan.returning.columns else []
        return Mutation(rules.codec, deletes=old), Written(kept, len(rows))
    mutation = _encoded(rules, changed)
    if plan.moves_keys:
        mutation = moved(rules.codec, old, mutation.keys, mutation.bodies)
        mutation.carried = rules.carried
    new: list[Row] = []
    if plan.returning.columns:
        decode = plan.finder.codec.decode_row
        pairs = zip(mutation.keys, mutation.bodies, strict=True)
        new = [decode(key, body) for key, body in pairs]
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
    rows = returned_rows(plan.returning, written.rows, bindings)
    return Result(
        tag=tag,
        columns=plan.returning.columns,
        rows=rows,
        row_count=count,
        commit_timestamp=committed_at,
    )


def returned_rows(returning: Projection, rows: Sequence[Row], bindings: Bindings) -> list[Row]:
    return [
        tuple(scalar.evaluate(row, bindings) for scalar in returning.scalars)  # type: ignore[misc]
        for row in rows
    ]
