"""The protocol of evaluators that compute queries over Arrow tables."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ...catalog.values.column_types import ColumnType
from .results import ResultColumn

Declared = Sequence[ColumnType | None]
"""The types that tables give a result's columns, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query. Column names may repeat."""

    columns: tuple[ResultColumn, ...]
    table: pa.Table


class QueryEvaluator(Protocol):
    """Computes queries. Each is given all tables that it reads; all methods raise duckdb.Error."""

    async def run(
        self,
        sql: str,
        tables: Mapping[str, pa.Table],
        parameters: Sequence[object],
        declared: Declared = (),
    ) -> Answer:
        """Returns the result of one query."""
        ...

    def answers(
        self,
        sql: str,
        tables: Mapping[str, pa.Table],
        parameters: Sequence[object],
        declared: Declared = (),
    ) -> AsyncGenerator[Answer, None]:
        """Returns the result of one query in batches, made as they are asked for: one at least."""
        ...

    async def describe(
        self,
        sql: str,
        tables: Mapping[str, pa.Table],
        parameter_count: int,
        declared: Declared = (),
    ) -> tuple[ResultColumn, ...]:
        """The columns that a query has, without running it."""
        ...
