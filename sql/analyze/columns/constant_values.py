"""Rows of constants as a table's columns hold them, without a tree for each constant.

What is wrong with a constant is said by the way that trees go: it is taken again, with its tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot.tokenizer_core import TokenType

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.column_types import coerce
from ....catalog.values.errors import SQLError
from ....kvlayer.fibre import give_way
from ...parse.constant_rows import Constant, Row
from ..scalars import BOOL, DECIMAL, INT8, Scalar
from .column_values import check_assignable, constant, value_for

_DIGITS_OF_INT8 = 19
"""With fewer a number is an INT8 whatever they are."""
_TYPES = {
    TokenType.NUMBER: (INT8, DECIMAL),
    TokenType.TRUE: (BOOL,),
    TokenType.FALSE: (BOOL,),
}


def constant_rows(
    rows: Sequence[Row],
    descriptor: TableDescriptor,
    places: Sequence[int | None],
    defaults: Sequence[Scalar],
) -> list[tuple[Scalar, ...]]:
    """The rows as a scalar for each column of the table. `places` are the columns that the items
    are for, None where an item counts for nothing. Raises SQLError."""
    columns = [
        None if place is None else _Column(descriptor, place) for place in places[: len(rows[0])]
    ]
    made: list[tuple[Scalar, ...]] = []
    for row in rows:
        give_way()
        values = list(defaults)
        for column, item in zip(columns, row, strict=True):
            if column is not None:
                values[column.place] = column.value(item)
        made.append(tuple(values))
    return made


class _Column:
    """A column that constants are for, and which of their kinds it is known to take."""

    def __init__(self, descriptor: TableDescriptor, place: int) -> None:
        self.place = place
        self._descriptor = descriptor
        self._column = descriptor.visible_columns[place]
        self._taken: set[TokenType] = set()

    def value(self, item: Constant) -> Scalar:
        if item.kind in self._taken or self._takes(item):
            try:
                datum = coerce(self._column.type, _datum(item), column=self._column.name)
            except (SQLError, ArithmeticError):
                pass
            else:
                return constant(datum)
        return value_for(item.tree, self._descriptor, self.place, {}, None)

    def _takes(self, item: Constant) -> bool:
        """Whether every constant of an item's kind may be assigned to the column."""
        try:
            for type in _TYPES.get(item.kind, ()):
                check_assignable(type, self._column.type, self._column.name, item.tree)
        except SQLError:
            return False
        self._taken.add(item.kind)
        return True


def _datum(item: Constant) -> object:
    match item.kind:
        case TokenType.STRING:
            return item.text
        case TokenType.NUMBER:
            if item.text.isdecimal() and len(item.text) < _DIGITS_OF_INT8:
                return -int(item.text) if item.negative else int(item.text)
            number = Decimal(item.text)
            return number.copy_negate() if item.negative and number else number
        case TokenType.NULL:
            return None
    return item.kind == TokenType.TRUE
