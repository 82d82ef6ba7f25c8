"""INSERT, UPSERT, UPDATE and DELETE.

By themselves, statements whose reads are all of known keys run in one phase: their rows are
computed before, and checks and writes happen in one step. Every other statement runs in a
transaction, its own or the session's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rows.row_codec import codec_for
from ....catalog.values.arrow_columns import column_datums
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import Timestamp
from ....kvlayer.process.fibre import end_slice, in_slices_where
from ....kvlayer.txn import Evaluation, Transaction
from ...analyze.calls.row_calls import ValueNeeded
from ...analyze.columns.column_values import SlotValue, refuse_inserted
from ...analyze.given_tables import filled, with_given
from ...analyze.predicates import bind_predicates
from ...analyze.scalars import Bindings
from ...plan.plans import DeletePlan, InsertPlan, Plan, RowFinder, SelectPlan, UpdatePlan, WithPlan
from ...results.results import Answer, Result, Row
from ...syntax.statements import InsertMode
from ..query import reading
from ..query.locking import run_locking
from .conflicts import Collisions
from .foreign_keys import write_in
from .mutations import Mutation, has_references, lock_first
from .row_rules import RowRules, encode_batch, encoded
from .steps import (
    ONE_PHASE_BYTES_MAX,
    SLICE_BYTES,
    SLICE_ROWS,
    TooWide,
    batches_of,
    drop,
    in_steps,
    listed,
    long_bodies,
    read_bounded,
    refuse_wide,
    sliced,
    weight,
)

ONE_PHASE_ROWS_MAX = 2000
"""Rows that one step writes: more go in slices, as intents."""

DML = InsertPlan | UpdatePlan | DeletePlan


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write: the count of rows, and RETURNING's rows."""

    rows: Sequence[Row]
    count: int


def one_phase_applies(plan: DML) -> bool:
    """Whether the statement, alone, can be carried out in the evaluating step."""
    if has_references(plan.descriptor):
        return False
    match plan:
        case InsertPlan():
            if plan.query is not None or plan.row_count > ONE_PHASE_ROWS_MAX:
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


def at_once_applies(plan: DML) -> bool:
    """Whether the statement writes one row, known by its key, and nothing else is to be read or
    written for it."""
    table = plan.descriptor
    if table.maintained_indexes or plan.returning.columns or not one_phase_applies(plan):
        return False
    rules = RowRules.of(table)
    if rules.carried or not rules.native:
        return False
    if isinstance(plan, InsertPlan):
        return plan.conflict is None and plan.row_count == 1
    access = plan.finder.access
    moves = isinstance(plan, UpdatePlan) and plan.moves_keys
    return access is not None and bool(access.lone) and not moves


# In one phase


async def evaluating(plan: DML, bindings: Bindings) -> Callable[[Evaluation], Written]:
    """Computes all of a statement that needs no reading. Returns what `Store.one_phase` evaluates,
    more than once perhaps. Both raise TooWide."""
    if isinstance(plan, InsertPlan):
        proposed = await _values_mutation(plan, bindings)
        refuse_wide(proposed.bodies)
        return partial(_insert_in_one_phase, plan, proposed, bindings)
    assert plan.finder.access is not None, plan
    keys = plan.finder.access.keys(bindings)
    return partial(_change_in_one_phase, plan, keys, bindings)


def _insert_in_one_phase(
    plan: InsertPlan, proposed: Mutation, bindings: Bindings, evaluation: Evaluation
) -> Written:
    if plan.conflict is not None:
        _, changed, count = Collisions(plan, proposed).apply(evaluation, bindings)
        return _told(plan, changed, count, bindings)
    proposed.apply(evaluation)
    return _told(plan, _rows_put(plan, proposed), len(proposed.keys), bindings)


def _change_in_one_phase(
    plan: UpdatePlan | DeletePlan, keys: list[bytes], bindings: Bindings, evaluation: Evaluation
) -> Written:
    found = reading.decoded(plan.descriptor, keys, read_bounded(evaluation, keys))
    found = _matching(plan.finder, found, bindings)
    changed = _changed_rows(plan, found, bindings)
    if isinstance(plan, UpdatePlan):
        changed = RowRules.of(plan.finder.descriptor).complete(changed, bindings)
        if len(changed) > 1 and weight(changed) > ONE_PHASE_BYTES_MAX:
            raise TooWide
    mutation, rows = _mutated(plan, found, changed)
    mutation.apply(evaluation)
    return _told(plan, rows, len(found), bindings)


async def _values_mutation(
    plan: InsertPlan, bindings: Bindings, further: Sequence[Bindings] = ()
) -> Mutation:
    """The rows of VALUES, and those that runs with further parameters add."""
    rules = RowRules.of(plan.descriptor)
    made = await in_slices_where(plan.row_count > SLICE_ROWS, lambda: _values(plan, bindings))
    for place, each in enumerate(further):
        try:
            made += _values(plan, each)
        except ValueNeeded as needed:
            needed.wanted *= len(further) - place
            raise
    rows = made if rules.plain else await rules.complete_all(made, bindings)
    mutation = await sliced(rows, lambda: encoded(rules, rows))
    _finish_insert(plan, mutation)
    return mutation


def _values(plan: InsertPlan, bindings: Bindings) -> list[Row]:
    """The rows of VALUES. They are converted to their columns' types later, which says which one
    it is not of."""
    rows: list[Row] = []
    columns: list[Sequence[Datum]] = []
    try:
        for row in in_steps(plan.rows):
            rows.append(tuple([one.evaluate((), bindings) for one in row]))  # type: ignore[misc]
        constants = plan.constants
        if constants is None:
            return rows
        for place, default in enumerate(constants.defaults):
            given = constants.columns.get(place)
            if given is None:
                steps = in_steps(range(constants.row_count))
                given = [default.evaluate((), bindings) for _ in steps]  # type: ignore[misc]
            columns.append(given)
    except ValueNeeded as needed:
        needed.wanted = len(plan.rows) - len(rows) or plan.row_count - len(rows)
        raise
    return rows + list(zip(*columns, strict=True))


def _finish_insert(plan: InsertPlan, mutation: Mutation) -> None:
    if plan.conflict is not None:
        return  # what is proposed is not yet what is written
    if plan.mode is InsertMode.UPSERT:
        mutation.keep_last()
    else:
        mutation.insert_only()


def _rows_put(plan: DML, mutation: Mutation) -> Sequence[Row]:
    """The rows that an INSERT or UPDATE puts, for RETURNING."""
    if not plan.returning.columns:
        return ()
    decode = codec_for(plan.descriptor).decode_row
    pairs = list(zip(mutation.keys, mutation.bodies, strict=True))
    return [decode(key, body) for key, body in in_steps(pairs)]


def _told(plan: DML, rows: Sequence[Row], count: int, bindings: Bindings) -> Written:
    """RETURNING that Python evaluates, within the statement: if this fails, nothing is written."""
    scalars = plan.returning.scalars
    if not scalars:
        return Written((), count)
    returned: list[Row] = []
    for row in in_steps(rows):
        returned.append(tuple([scalar.evaluate(row, bindings) for scalar in scalars]))  # type: ignore[misc]
    return Written(returned, count)


# In a transaction


async def run_in(plan: DML, transaction: Transaction, bindings: Bindings) -> Written:
    """Carries the statement out in a transaction, and does not commit it."""
    mutation, written = await read_in(plan, transaction, bindings)
    await write_in(mutation, transaction, bindings)
    return written


async def run_whole(
    plan: DML | WithPlan, transaction: Transaction, bindings: Bindings
) -> Written | Result:
    """As `run_in`; of a WITH that writes all parts, and what its last part wrote or selected."""
    if not isinstance(plan, WithPlan):
        return await run_in(plan, transaction, bindings)
    given: dict[int, pa.Table] = {}
    touched: set[bytes] = set()
    mutations: list[Mutation] = []
    for step in plan.steps:
        seeing = with_given(bindings, given)
        if isinstance(step.plan, SelectPlan):
            rows: Sequence[Row] = (await run_locking(step.plan, transaction, seeing)).fetch_rows()
        else:
            mutation, written = await read_in(step.plan, transaction, seeing, touched)
            mutations.append(mutation)
            rows = written.rows
        if step.returned is not None:
            given[step.returned.id] = filled(step.returned, rows)
    seeing = with_given(bindings, given)
    outcome: Result | Written
    if isinstance(plan.main, SelectPlan):
        outcome = await reading.run_select(plan.main, transaction, seeing)
    else:
        mutation, outcome = await read_in(plan.main, transaction, seeing, touched)
        mutations.append(mutation)
    for mutation in mutations:
        await write_in(mutation, transaction, bindings)
    return outcome


async def read_in(
    plan: DML, transaction: Transaction, bindings: Bindings, touched: set[bytes] | None = None
) -> tuple[Mutation, Written]:
    """Evaluates a statement: returns its writes, which are not applied yet, and its RETURNING rows.

    Rows in `touched` are left alone: an earlier part of the statement changes them. The rows that
    are found join them.
    """
    told: Sequence[Row]
    if isinstance(plan, InsertPlan):
        mutation = proposed = await _insertion(plan, transaction, bindings)
        if plan.conflict is not None:
            many = long_bodies(proposed.bodies)
            collisions = await in_slices_where(many, lambda: Collisions(plan, proposed))
            mutation, told, count = await collisions.settle_in(transaction, bindings)
        else:
            told, count = _rows_put(plan, mutation), len(mutation.keys)
        return mutation, await sliced(told, lambda: _told(plan, told, count, bindings))
    rows, computed = await _find(plan.finder, transaction, bindings)
    if touched:
        kept = [number for number, (key, _) in enumerate(rows) if key not in touched]
        computed = [computed[number] for number in kept] if computed else computed
        rows = [rows[number] for number in kept]
    if touched is not None:
        touched.update(key for key, _ in rows)
    assigned = changed = await sliced(rows, lambda: _changed_rows(plan, rows, bindings, computed))
    if isinstance(plan, UpdatePlan):
        changed = await RowRules.of(plan.finder.descriptor).complete_all(assigned, bindings)
    mutation, told = await sliced(changed or rows, lambda: _mutated(plan, rows, changed))
    written = await sliced(told, lambda: _told(plan, told, len(rows), bindings))
    await drop(rows, computed, assigned, changed)
    return mutation, written


async def _insertion(plan: InsertPlan, transaction: Transaction, bindings: Bindings) -> Mutation:
    if plan.query is None:
        return await _values_mutation(plan, bindings)
    found = (await reading.run_select(plan.query, transaction, bindings)).fetch_arrow()
    targets = plan.targets if plan.named else plan.targets[: found.num_columns]
    if found.num_columns != len(targets):
        more = "expressions" if found.num_columns > len(plan.targets) else "target columns"
        less = "target columns" if more == "expressions" else "expressions"
        raise SQLError("42601", f"INSERT has more {more} than {less}")
    columns = [plan.descriptor.visible_columns[place] for place in targets]
    for column in columns:
        refuse_inserted(column, plan.overriding)
    named = found.rename_columns([column.name for column in columns])
    rules = RowRules.of(plan.descriptor)
    mutation = Mutation(rules.codec, carried=rules.carried)
    for batch in batches_of(named):
        part = await encode_batch(rules, batch, bindings)
        mutation.keys += part.keys
        mutation.bodies += part.bodies
        await asyncio.sleep(0)
    _finish_insert(plan, mutation)
    return mutation


async def _find(
    finder: RowFinder, transaction: Transaction, bindings: Bindings
) -> tuple[list[reading.KeyedRow], Sequence[Row]]:
    """The rows, and for each the values that DuckDB computed for it."""
    if finder.access is not None:
        rows: list[reading.KeyedRow] = []
        if finder.access.points:
            keys = finder.access.keys(bindings)
            await lock_first(transaction, keys)
            rows = await reading.read_points(finder.descriptor, keys, transaction)
        else:
            async for chunk in reading.read_rows(
                finder.access, transaction, bindings, bounded=False
            ):
                rows += chunk
        return await sliced(rows, lambda: _matching(finder, rows, bindings)), ()
    assert finder.analytic is not None, finder
    answer = await reading.run_analytic(finder.analytic, transaction, bindings)
    width = len(finder.descriptor.visible_columns)
    many = answer.table.num_rows > SLICE_ROWS or answer.table.nbytes > SLICE_BYTES
    return await in_slices_where(many, lambda: _keyed(finder.descriptor, answer, width))


def _keyed(
    table: TableDescriptor, answer: Answer, width: int
) -> tuple[list[reading.KeyedRow], list[Row]]:
    """Each row that was found, once, with its key; and behind its `width` columns what was computed
    for it."""
    encode_key, columns = codec_for(table).encode_key, table.visible_columns
    places = [columns.index(column) for column in table.key_columns]
    keyed: dict[bytes, Row] = {}
    for row in in_steps(rows_in(answer)):
        keyed.setdefault(encode_key([row[place] for place in places]), row)
    rows = [(key, row[:width]) for key, row in keyed.items()]
    end_slice()
    return rows, [row[width:] for row in keyed.values()]


def rows_in(answer: Answer) -> list[Row]:
    columns: list[list[Datum]] = [[] for _ in answer.columns]
    for batch in batches_of(answer.table):
        for values, column, array in zip(columns, answer.columns, batch.columns, strict=True):
            values += column_datums(column.type, array)
            end_slice()
    return list(zip(*columns, strict=True))


def _matching(
    finder: RowFinder, rows: list[reading.KeyedRow], bindings: Bindings
) -> list[reading.KeyedRow]:
    access = finder.access
    if not finder.predicates or (access is not None and access.answers(finder.predicates)):
        return rows
    test = bind_predicates(finder.predicates, bindings)
    return [pair for pair in in_steps(rows) if test(pair[1])]


def _changed_rows(
    plan: UpdatePlan | DeletePlan,
    rows: Sequence[reading.KeyedRow],
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
    try:
        for number, (_, row) in enumerate(in_steps(rows)):
            values: list[Datum] = list(row)
            for assignment in plan.assignments:
                if assignment.scalar is not None:
                    value = assignment.scalar.evaluate(row, bindings)
                else:
                    assert assignment.computed is not None, assignment
                    value = computed[number][assignment.computed]
                values[assignment.place] = value  # type: ignore[call-overload]
            changed.append(tuple(values))
    except ValueNeeded as needed:
        needed.wanted = len(rows) - len(changed)
        raise
    return changed


def _mutated(
    plan: UpdatePlan | DeletePlan, rows: Sequence[reading.KeyedRow], changed: Sequence[Row]
) -> tuple[Mutation, Sequence[Row]]:
    """Returns the mutation of the rows found, and the rows for RETURNING."""
    rules = RowRules.of(plan.finder.descriptor)

    def old() -> list[bytes]:
        return list(listed(rows, lambda some: [key for key, _ in some]))

    if isinstance(plan, DeletePlan):
        returned = rows if plan.returning.columns else ()
        kept = list(listed(returned, lambda some: [row for _, row in some]))
        return Mutation(rules.codec, deletes=old()), kept
    mutation = encoded(rules, changed)
    if plan.moves_keys:
        mutation.move_from(old())
    return mutation, _rows_put(plan, mutation)


# Several runs in one


class Apart(Exception):
    """Runs of a statement are to be carried out in turn. Nothing of them was written."""


def together_applies(plan: Plan) -> bool:
    """Whether runs with one list of parameters after another may be one write: each would do the
    same beside the others as behind them.

    So inserts VALUES that read nothing, and so changes or deletes the one row with a key.
    """
    if isinstance(plan, InsertPlan):
        # Where rows refer to one another, one that is written in turn may come too early.
        table = plan.descriptor
        apart = any(key.referenced_id == table.id for key in table.foreign_keys)
        alone = plan.query is None and plan.conflict is None and plan.mode is InsertMode.INSERT
        return alone and plan.row_count == 1 and not apart and not plan.returning.columns
    if not isinstance(plan, UpdatePlan | DeletePlan) or plan.returning.columns:
        return False
    if isinstance(plan, UpdatePlan) and (
        plan.moves_keys or any(index.unique for index in plan.descriptor.maintained_indexes)
    ):
        return False  # a value may be free once all have run, and not when its own run comes
    access = plan.finder.access
    return access is not None and bool(access.lone) and one_phase_applies(plan)


async def run_together(
    plan: Plan, transaction: Transaction, runs: Sequence[Bindings]
) -> list[Result]:
    """Carries out runs of a statement as one write; returns the result of each.

    Raises Apart where they are no such runs, and where one fails: in turn it fails behind those
    that do not.
    """
    if not together_applies(plan):
        raise Apart
    assert isinstance(plan, InsertPlan | UpdatePlan | DeletePlan), plan
    savepoint = await transaction.savepoint()
    try:
        if isinstance(plan, InsertPlan):
            counts, mutation = [1] * len(runs), await _values_mutation(plan, runs[0], runs[1:])
        else:
            counts, mutation = await _changed_by(plan, runs, transaction)
        await write_in(mutation, transaction, runs[0])
    except (SQLError, ValueNeeded, Apart) as error:
        await transaction.rollback_to(savepoint)
        await transaction.release(savepoint)
        if isinstance(error, SQLError):
            raise Apart from error
        raise
    await transaction.release(savepoint)
    return [result_of(plan, Written((), count), None) for count in counts]


async def _changed_by(
    plan: UpdatePlan | DeletePlan, runs: Sequence[Bindings], transaction: Transaction
) -> tuple[list[int], Mutation]:
    """Returns how many rows each run finds, and what all of them write. Raises Apart where two
    are about the same row."""
    finder = plan.finder
    assert finder.access is not None, plan
    keys = [key for bindings in runs for key in finder.access.keys(bindings)]
    assert len(keys) == len(runs), plan
    if len(set(keys)) < len(keys):
        raise Apart
    await lock_first(transaction, keys)
    bodies = await transaction.get_each(keys)
    found: list[reading.KeyedRow] = []
    changed: list[Row] = []
    counts: list[int] = []
    for key, body, bindings in zip(keys, bodies, runs, strict=True):
        rows = _matching(finder, reading.decoded(finder.descriptor, [key], [body]), bindings)
        counts.append(len(rows))
        found += rows
        changed += _changed_rows(plan, rows, bindings)
    completed: Sequence[Row] = changed
    if isinstance(plan, UpdatePlan):
        rules = RowRules.of(finder.descriptor)
        completed = await rules.complete_all(changed, runs[0])
    mutation, _ = _mutated(plan, found, completed)
    return counts, mutation


# Results


def tag_of(plan: DML, count: int) -> str:
    """The command tag of a write of so many rows."""
    return f"{_TAGS[type(plan)]} {count}"


_TAGS = {InsertPlan: "INSERT 0", UpdatePlan: "UPDATE", DeletePlan: "DELETE"}


def result_of(
    plan: DML | WithPlan, written: Written | Result, committed_at: Timestamp | None
) -> Result:
    """Returns the result of a statement that wrote, which committed at `committed_at`."""
    if isinstance(written, Result):
        return replace(written, commit_timestamp=committed_at)
    if isinstance(plan, WithPlan):
        assert not isinstance(plan.main, SelectPlan), plan
        plan = plan.main
    columns = plan.returning.columns
    return Result(
        tag=tag_of(plan, written.count),
        columns=columns,
        rows=written.rows if columns else None,
        row_count=written.count,
        commit_timestamp=committed_at,
    )
