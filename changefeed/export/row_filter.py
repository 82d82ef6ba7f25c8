"""Filters that a reader pushes down: comparisons of a column with a value, all of which hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.arrow_columns import column_array
from ...catalog.values.errors import SQLError
from ...catalog.values.physical import to_physical


class Comparison(Enum):
    """The comparisons of a column. The value is the word of a request."""

    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    NULL = "is null"
    NOT_NULL = "is not null"


class FilterRefused(Exception):
    """A filter that cannot be applied; the message says which and why."""


_FUNCTIONS: dict[Comparison, Callable[[Any, Any], Any]] = {
    Comparison.EQUAL: pc.equal,
    Comparison.LESS: pc.less,
    Comparison.AT_MOST: pc.less_equal,
    Comparison.GREATER: pc.greater,
    Comparison.AT_LEAST: pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class _Condition:
    column: str
    comparison: Comparison
    value: pa.Scalar[Any] | None


class RowFilter:
    """Conditions on a table's rows, all of which must hold; none lets every row pass.

    As in SQL, a comparison with NULL does not hold.
    """

    def __init__(self, conditions: Sequence[_Condition] = ()) -> None:
        self._conditions = tuple(conditions)

    @classmethod
    def of(
        cls, descriptor: TableDescriptor, conditions: Sequence[tuple[str, Comparison, object]]
    ) -> RowFilter:
        """Raises SQLError 42703 for an unknown column, FilterRefused for what is not comparable."""
        made: list[_Condition] = []
        for name, comparison, value in conditions:
            column = descriptor.column(name)
            scalar = None
            if comparison in _FUNCTIONS:
                try:
                    physical = to_physical(column.type, value, column=name)
                    scalar = column_array(column.type, [physical])[0]
                except (SQLError, pa.ArrowException) as error:
                    raise FilterRefused(
                        f'{value!r} is no value of column "{name}": {error}'
                    ) from error
            made.append(_Condition(name, comparison, scalar))
        return cls(made)

    @property
    def columns(self) -> Sequence[str]:
        """The columns that it looks at."""
        return tuple(dict.fromkeys(condition.column for condition in self._conditions))

    def apply(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that pass, of a batch that has the filter's columns."""
        mask: Any = None
        for condition in self._conditions:
            column = rows.column(condition.column)
            match condition.comparison:
                case Comparison.NULL:
                    holds = pc.is_null(column)
                case Comparison.NOT_NULL:
                    holds = pc.is_valid(column)
                case comparison:
                    holds = _FUNCTIONS[comparison](column, condition.value)
            mask = holds if mask is None else pc.and_kleene(mask, holds)
        return rows if mask is None else rows.filter(mask)
