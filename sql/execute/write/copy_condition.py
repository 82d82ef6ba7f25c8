"""COPY … FROM … WHERE: rows that are passed over before anything is asked of them."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...analyze.binder import check_columns
from ...analyze.scalars import Bindings
from ...parse import columns_in, position_of
from ...runtime.query_evaluator import QueryEvaluator
from .row_expressions import result_types, truths


class CopyCondition:
    """The condition of a COPY that reads `given` columns of a table; the others are what they are
    by default."""

    def __init__(self, table: TableDescriptor, given: tuple[Column, ...], tree: exp.Expr) -> None:
        self._table = table
        self._tree = tree
        self._given = {column.name for column in given}

    async def check(self, analytics: QueryEvaluator) -> None:
        """Raises SQLError where it is no condition of such rows."""
        position = position_of(self._tree)
        for name in columns_in(self._tree):
            check_columns(self._tree, self._table, self._table.name)
            column = self._table.column(name)
            if column.computed is not None:
                raise SQLError(
                    "42P10",
                    "computed columns are not supported in COPY FROM WHERE conditions",
                    detail=f'Column "{name}" is computed.',
                    position=position,
                )
            if name not in self._given and column.default_expression is not None:
                raise SQLError(
                    "0A000",
                    f'COPY FROM WHERE cannot use column "{name}", whose default is drawn',
                    hint="Name it among the columns that COPY reads.",
                    position=position,
                )
        (type,) = await result_types(self._table, [self._tree], analytics)
        if type.kind is not TypeKind.BOOL:
            raise SQLError(
                "42804",
                f"argument of COPY FROM WHERE must be type boolean, not type {type.kind.value}",
                position=position,
            )

    async def kept(
        self, batch: pa.RecordBatch, bindings: Bindings, analytics: QueryEvaluator
    ) -> pa.RecordBatch:
        """The rows of which it is true."""
        count = batch.num_rows
        columns = [
            batch.column(column.name).to_pylist()
            if column.name in self._given
            else [column.default] * count
            for column in self._table.visible_columns
        ]
        rows = list(zip(*columns, strict=True))
        true = await truths(self._table, self._tree, rows, bindings, analytics)
        return batch.filter(pa.array(true, pa.bool_()))
