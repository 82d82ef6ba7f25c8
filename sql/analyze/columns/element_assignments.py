"""Assignments to parts of a column: `SET a[2] = 5, b[1:2] = '{7,8}', doc['at']['home'] = '"x"'`.

The column's whole new value is an expression of the old one. Arrays begin at 1 here, so what would
begin elsewhere in PostgreSQL is refused by the macros that carry this out.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column
from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...builtins.documents.calls import call
from ...builtins.macros import PREFIX
from ...parse import position_of
from ...parse.dml.assignments import ELEMENT
from .column_values import is_default


def whole_value(value: exp.Expr, column: Column, relation: str | None) -> exp.Expr:
    """The value of a column of which parts are assigned; any other value as it is. Raises SQLError
    42804 for a column that has no parts, and what PostgreSQL refuses."""
    call = value.unnest()
    if not isinstance(call, exp.Anonymous) or call.name != ELEMENT:
        return value
    whole, lower, upper, subscript, part = call.expressions
    if is_default(part):
        raise SQLError(
            "0A000", "cannot set an array element to DEFAULT", position=position_of(part)
        )
    own = exp.column(column.name, table=relation, quoted=True)
    before = own if isinstance(whole, exp.Null) else whole_value(whole, column, relation)
    if column.type.kind is TypeKind.JSONB:
        return _document(before, subscript, part, column)
    if column.type.element is None:
        raise SQLError(
            "42804",
            f"cannot subscript type {column.type} because it does not support subscripting",
            position=position_of(value),
        )
    if isinstance(subscript, exp.Null):
        given = _cast(part, column.type)
        return _call("array_with_slice", before, lower, upper, given)
    if len(subscript.expressions) > 1:
        raise SQLError("2202E", "arrays have one dimension", position=position_of(value))
    given = _cast(part, column.type.element)
    return _call("array_with_element", before, _integer(subscript.expressions[0]), given)


def _document(before: exp.Expr, subscript: exp.Expr, part: exp.Expr, column: Column) -> exp.Expr:
    if isinstance(subscript, exp.Null):
        raise SQLError("0A000", "jsonb subscript does not support slices")
    path = [exp.cast(item.copy(), "text", dialect="postgres") for item in subscript.expressions]
    empty = exp.cast(exp.Literal.string(_empty(subscript)), "jsonb", dialect="postgres")
    whole = exp.Coalesce(this=before, expressions=[empty])
    given = exp.cast(part.copy(), "jsonb", dialect="postgres")
    null = exp.cast(exp.Literal.string("null"), "jsonb", dialect="postgres")
    value = exp.Coalesce(this=given, expressions=[null])
    made = exp.Array(expressions=list(path))
    return call("jsonb_assigned", whole, made, value)


def _empty(subscript: exp.Expr) -> str:
    """Returns the value in a NULL's place: an array where the first subscript is a number."""
    first = subscript.expressions[0].unnest()
    number = first.this if isinstance(first, exp.Neg) else first
    return "[]" if isinstance(number, exp.Literal) and not number.is_string else "{}"


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=PREFIX + name, expressions=[a.copy() for a in arguments])


def _integer(subscript: exp.Expr) -> exp.Expr:
    return exp.cast(subscript.copy(), exp.DataType.Type.BIGINT)


def _cast(part: exp.Expr, type: ColumnType) -> exp.Expr:
    return exp.cast(part.copy(), type.declared_name, dialect="postgres")
