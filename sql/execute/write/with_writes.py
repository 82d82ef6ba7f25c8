"""Statements whose WITH writes: every part reads, and then every part writes, in order.

So no part sees what another has written, and a row that two parts change is changed by the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.column_types import coerce
from ....kvlayer.clock import Timestamp
from ....kvlayer.txn import Transaction
from ...analyze.given_tables import filled, with_given
from ...analyze.scalars import Bindings
from ...plan.plans import SelectPlan, WithPlan
from ...results.results import Result, Row
from ...runtime.query_evaluator import QueryEvaluator
from ..query.reading import run_select
from .cascades import write_in
from .dml import Written, read_in, result_of
from .mutations import Mutation


async def run_with_writes(
    plan: WithPlan, transaction: Transaction, bindings: Bindings, analytics: QueryEvaluator
) -> Result | Written:
    """Carries the statement out, and does not commit it: the rows of its query, or what its last
    part wrote."""
    given: dict[int, pa.Table] = {}
    touched: set[bytes] = set()
    mutations: list[Mutation] = []
    for step in plan.steps:
        seeing = with_given(bindings, given)
        mutation, written = await read_in(step.plan, transaction, seeing, analytics, touched)
        mutations.append(mutation)
        if step.returned is not None:
            given[step.returned.id] = filled(step.returned, _rows_of(step.returned, written))
    seeing = with_given(bindings, given)
    outcome: Result | Written
    if isinstance(plan.main, SelectPlan):
        outcome = await run_select(plan.main, transaction, seeing, analytics)
    else:
        mutation, outcome = await read_in(plan.main, transaction, seeing, analytics, touched)
        mutations.append(mutation)
    for mutation in mutations:
        await write_in(mutation, transaction, bindings, analytics)
    return outcome


def _rows_of(table: TableDescriptor, written: Written) -> Sequence[Row]:
    """Returns the rows of a step in the types of its table's columns."""
    if written.answer is None:
        return written.rows
    answer = Result(tag="", columns=written.answer.columns, table=written.answer.table)
    types = [column.type for column in table.visible_columns[1:]]
    return [
        tuple(coerce(type, value) for type, value in zip(types, row, strict=True))
        for row in answer.fetch_rows()
    ]


def result_with_writes(plan: WithPlan, outcome: Result | Written, at: Timestamp | None) -> Result:
    if isinstance(outcome, Result):
        return replace(outcome, commit_timestamp=at)
    assert not isinstance(plan.main, SelectPlan), plan
    return result_of(plan.main, outcome, at)
