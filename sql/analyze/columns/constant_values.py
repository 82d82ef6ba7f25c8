"""Rows of constants as a table's columns hold them, without a tree for each constant.

What is wrong with a constant is said by the way that trees go: rows are taken again, in their
order, with their trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.values.column_types import ColumnType, Datum, coerce
from ....catalog.values.errors import SQLError
from ....kvlayer.fibre import give_way
from ...parse.constant_rows import ConstantRows
from ..scalars import BOOL, DECIMAL, INT8, constant_datum
from .column_values import check_assignable, value_for

_LENGTH_OF_INT8 = 19
"""A number that is shorter is an INT8 whatever its digits are."""
_VALUES_PER_STEP = 16


def constant_columns(
    rows: ConstantRows, descriptor: TableDescriptor, places: Sequence[int]
) -> dict[int, list[Datum]]:
    """The rows' values by the columns of the table that they are for. `places` are the columns of
    the items. Raises SQLError."""
    wanted = list(enumerate(places[: len(rows.columns)]))
    try:
        return {
            place: _column(descriptor.visible_columns[place], rows.columns[number])
            for number, place in wanted
        }
    except (SQLError, ArithmeticError):
        return _told_in_order(rows, descriptor, wanted)


def _column(column: Column, written: list[str]) -> list[Datum]:
    """Raises SQLError, or ArithmeticError, where a value is none of the column's."""
    values = _integers(written) if column.type == INT8 else None
    if values is not None:
        return values
    found: list[Datum] = []
    kinds: set[type[object]] = set()
    for number, item in enumerate(written):
        if not number % _VALUES_PER_STEP:
            give_way()
        value = _read(item)
        kind = value.__class__
        if kind not in kinds:
            _check_assignable(kind, column)
            kinds.add(kind)
        found.append(coerce(column.type, value, column=column.name))
    return found


def _integers(written: list[str]) -> list[Datum] | None:
    """Numbers that are INT8s whatever their digits are; None where there is anything else."""
    try:
        return list(map(int, written)) if len(max(written, key=len)) < _LENGTH_OF_INT8 else None
    except ValueError:
        return None


_TYPES: dict[type[object], ColumnType] = {int: INT8, Decimal: DECIMAL, bool: BOOL}


def _check_assignable(kind: type[object], column: Column) -> None:
    check_assignable(_TYPES.get(kind), column.type, column.name, exp.Null())


def _read(written: str) -> object:
    first = written[0]
    if first == "'":
        return written[1:-1].replace("''", "'")
    if first in "nN":
        return None
    if first in "tTfF":
        return first in "tT"
    if len(written) < _LENGTH_OF_INT8 and "." not in written:
        return int(written)
    number = Decimal(written)
    return number or abs(number)  # there is no negative zero


def _told_in_order(
    rows: ConstantRows, descriptor: TableDescriptor, wanted: Sequence[tuple[int, int]]
) -> dict[int, list[Datum]]:
    """The same by trees, row by row, which raises what is wrong with the first wrong one."""
    columns: dict[int, list[Datum]] = {place: [] for _, place in wanted}
    for row in rows.rows():
        for number, place in wanted:
            scalar = value_for(row[number].tree, descriptor, place, {}, None)
            columns[place].append(constant_datum(scalar))
    return columns
