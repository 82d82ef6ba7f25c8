"""MERGE: what becomes of each pair of source and target, and of each source without one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import Timestamp
from ....kvlayer.txn import Transaction
from ...analyze.scalars import Bindings
from ...plan.plans import MergeActionPlan, MergePlan, MergeSide
from ...results.results import Result, Row
from ...runtime.query_evaluator import QueryEvaluator
from ...syntax.merge_statements import MergeAction
from ..query.reading import run_analytic
from .cascades import write_in
from .dml import SLICE_ROWS, key_places, rows_in
from .mutations import Mutation, moved
from .row_rules import RowRules


@dataclass(slots=True)
class _Changes:
    """What the statement does: rows that change by the keys that they have, and the rest."""

    old: list[bytes] = field(default_factory=list)
    changed: list[Row] = field(default_factory=list)
    deleted: list[bytes] = field(default_factory=list)
    inserted: list[Row] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.changed) + len(self.deleted) + len(self.inserted)


async def run_merge(
    plan: MergePlan, transaction: Transaction, bindings: Bindings, analytics: QueryEvaluator
) -> int:
    """Carries the statement out, and does not commit it: how many rows it has written."""
    changes = _Changes()
    if plan.matched is not None:
        rows = await _read(plan.matched, transaction, bindings, analytics)
        _match(plan, plan.matched, rows, bindings, changes)
    if plan.unmatched is not None:
        width = len(plan.descriptor.visible_columns)
        for number, *computed in await _read(plan.unmatched, transaction, bindings, analytics):
            action = _chosen(plan.unmatched, number)
            if action is not None and action.kind is MergeAction.INSERT:
                empty: list[Datum] = [None] * width
                changes.inserted.append(_assigned(action, empty, computed, bindings))
    mutation = await _mutation(plan, changes, bindings, analytics)
    await write_in(mutation, transaction, bindings, analytics)
    return changes.count


def merged(count: int, at: Timestamp | None) -> Result:
    """The result of the statement."""
    return Result(tag=f"MERGE {count}", row_count=count, commit_timestamp=at)


async def _read(
    side: MergeSide, transaction: Transaction, bindings: Bindings, analytics: QueryEvaluator
) -> Sequence[Row]:
    answer = await run_analytic(side.select, transaction, bindings, analytics)
    return rows_in(answer)


def _match(
    plan: MergePlan,
    side: MergeSide,
    rows: Sequence[Row],
    bindings: Bindings,
    changes: _Changes,
) -> None:
    """Raises SQLError 21000 for a row that matches twice, where both change it."""
    width = len(plan.descriptor.visible_columns)
    encode_key, places = plan.codec.encode_key, key_places(plan.codec)
    touched: set[bytes] = set()
    for row in rows:
        action = _chosen(side, row[width])
        if action is None or action.kind is MergeAction.NOTHING:
            continue
        key = encode_key([row[place] for place in places])
        if key in touched:
            raise SQLError(
                "21000",
                "MERGE command cannot affect row a second time",
                hint="Ensure that not more than one source row matches any one target row.",
            )
        touched.add(key)
        if action.kind is MergeAction.DELETE:
            changes.deleted.append(key)
            continue
        changes.old.append(key)
        values = _assigned(action, list(row[:width]), row[width + 1 :], bindings)
        changes.changed.append(values)


def _chosen(side: MergeSide, number: object) -> MergeActionPlan | None:
    if number is None:
        return None
    assert isinstance(number, int), number
    return side.actions[number]


def _assigned(
    action: MergeActionPlan, values: list[Datum], computed: Sequence[Datum], bindings: Bindings
) -> Row:
    """The row with what the action gives it."""
    for assignment in action.assignments:
        if assignment.scalar is not None:
            values[assignment.place] = assignment.scalar.evaluate((), bindings)  # type: ignore[call-overload]
        else:
            assert assignment.computed is not None, assignment
            values[assignment.place] = computed[assignment.computed]
    return tuple(values)


async def _mutation(
    plan: MergePlan, changes: _Changes, bindings: Bindings, analytics: QueryEvaluator
) -> Mutation:
    rules = RowRules.of(plan.descriptor)
    rows = [*changes.changed, *changes.inserted]
    encoded: list[tuple[bytes, bytes]] = []
    for start in range(0, len(rows), SLICE_ROWS):
        part = await rules.complete_all(rows[start : start + SLICE_ROWS], bindings, analytics)
        encoded += [rules.codec.encode_row(row) for row in part]
        await asyncio.sleep(0)
    count = len(changes.changed)
    keys = [key for key, _ in encoded]
    bodies = [body for _, body in encoded]
    if plan.moves_keys:
        mutation = moved(rules.codec, changes.old, keys[:count], bodies[:count])
    else:
        mutation = Mutation(rules.codec, keys=keys[:count], bodies=bodies[:count])
    mutation.carried = rules.carried
    mutation.deletes = mutation.deletes + changes.deleted
    mutation.keys = mutation.keys + keys[count:]
    mutation.bodies = mutation.bodies + bodies[count:]
    mutation.absent = mutation.absent + keys[count:]
    mutation.check_distinct()
    return mutation
