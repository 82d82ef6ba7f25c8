"""Predicates that are evaluated in Python: conjunctions of comparisons of columns with constants.

    a = 1 AND b IN ($1, $2) AND c BETWEEN 'x' AND 'y' AND d IS NOT NULL

A row passes where every one of them is true; NULL compared with anything is not. NaN equals itself
and is above every other float, as in PostgreSQL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from sqlglot import exp

from ...catalog.values.column_types import BOOL, FLOAT8, INT8, ColumnType, Datum, array_of, coerce
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import FLOATS, TypeKind
from ..parse.constants import LIST, ConstantList, Given, Item
from ..syntax.trees import find_all, folded, position_of
from .scalars import EPOCH, Bindings, NotNative, Scalar, Scope, adapt, compile_scalar, type_of_cast

Values = Sequence[Datum]
Test = Callable[[Values], bool]


class Comparator(Enum):
    """The value is the sign, and the function of Python's values."""

    EQUAL = ("=", operator.eq)
    UNEQUAL = ("<>", operator.ne)
    LESS = ("<", operator.lt)
    LESS_OR_EQUAL = ("<=", operator.le)
    GREATER = (">", operator.gt)
    GREATER_OR_EQUAL = (">=", operator.ge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`column comparator constant`"""

    column: int
    type: ColumnType
    comparator: Comparator
    constant: Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementOf:
    """`column = ANY (array)`, or `column IN (constants)`, whose `count` is known."""

    column: int
    type: ColumnType
    array: Scalar
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NullTest:
    """`column IS [NOT] NULL`"""

    column: int
    null: bool


Predicate = Comparison | ElementOf | NullTest

_COMPARATORS: dict[type[exp.Expr], tuple[Comparator, Comparator]] = {
    exp.EQ: (Comparator.EQUAL, Comparator.EQUAL),
    exp.NEQ: (Comparator.UNEQUAL, Comparator.UNEQUAL),
    exp.LT: (Comparator.LESS, Comparator.GREATER),
    exp.LTE: (Comparator.LESS_OR_EQUAL, Comparator.GREATER_OR_EQUAL),
    exp.GT: (Comparator.GREATER, Comparator.LESS),
    exp.GTE: (Comparator.GREATER_OR_EQUAL, Comparator.LESS_OR_EQUAL),
}
"""The comparator of an operator, and of the same operator with its sides exchanged."""


_UNORDERED = (TypeKind.ARRAY, TypeKind.JSONB)
"""Types whose values Python orders otherwise, or not at all."""

_UNEQUAL_TEXTS = TypeKind.JSONB
"""Documents are their texts, and equal ones may be written with other zeros."""


def compile_predicates(
    tree: exp.Expr | None, scope: Scope, relation: str | None, *, arrays: bool = False
) -> tuple[Predicate, ...]:
    """The conjuncts of a WHERE clause, `= ANY (array)` among them where `arrays` are taken: their
    lengths are known when they are bound. Raises NotNative where one is anything else."""
    match tree:
        case None:
            return ()
        case exp.Paren():
            return compile_predicates(tree.this, scope, relation, arrays=arrays)
        case exp.And():
            left = compile_predicates(tree.this, scope, relation, arrays=arrays)
            return left + compile_predicates(tree.expression, scope, relation, arrays=arrays)
        case exp.EQ(expression=exp.Any()) if arrays:
            return (_element_of(tree, scope, relation),)
        case exp.Between() if not tree.args.get("symmetric"):
            least, greatest = Comparator.GREATER_OR_EQUAL, Comparator.LESS_OR_EQUAL
            return (
                _comparison(tree.this, least, tree.args["low"], scope, relation),
                _comparison(tree.this, greatest, tree.args["high"], scope, relation),
            )
    return (_predicate(tree, scope, relation),)


def _predicate(tree: exp.Expr, scope: Scope, relation: str | None) -> Predicate:
    match tree:
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            comparator, mirrored = _COMPARATORS[type(tree)]
            if isinstance(tree.this.unnest(), exp.Column):
                return _comparison(tree.this, comparator, tree.expression, scope, relation)
            return _comparison(tree.expression, mirrored, tree.this, scope, relation)
        case exp.In() if LIST in tree.meta:
            return _listed(tree, tree.meta[LIST], scope, relation)
        case exp.In() if tree.expressions and not tree.args.get("query"):
            if len(tree.expressions) == 1:
                only = tree.expressions[0]
                return _comparison(tree.this, Comparator.EQUAL, only, scope, relation)
            column, listed = _compared_column(tree.this, scope, relation)
            return _one_of(column, listed, tree.expressions, scope, relation)
        case exp.Is() if isinstance(tree.expression, exp.Null):
            column, _ = _column(tree.this, scope, relation)
            return NullTest(column=column, null=not tree.args.get("negate"))
        case exp.Not() if isinstance(tree.this, exp.Is | exp.Paren):
            inner = _predicate(tree.this.unnest(), scope, relation)
            if isinstance(inner, NullTest):
                return NullTest(column=inner.column, null=not inner.null)
    raise NotNative(type(tree).__name__)


def _comparison(
    left: exp.Expr, comparator: Comparator, right: exp.Expr, scope: Scope, relation: str | None
) -> Comparison:
    column, type = _compared_column(left, scope, relation)
    constant = _constant(right, type, scope, relation)
    if type.kind in _UNORDERED and comparator not in (Comparator.EQUAL, Comparator.UNEQUAL):
        raise NotNative("an order that Python's values do not have")
    return Comparison(column=column, type=type, comparator=comparator, constant=constant)


def _one_of(
    column: int, type: ColumnType, items: Iterable[exp.Expr], scope: Scope, relation: str | None
) -> ElementOf:
    """The column and constants that are converted to its type one by one."""
    constants = [_constant(item, type, scope, relation, alone=False) for item in items]

    def evaluate(values: Values, bindings: Bindings) -> object:
        return [constant.value(bindings) for constant in constants]

    array = Scalar(array_of(type), evaluate, True)
    return ElementOf(column=column, type=type, array=array, count=len(constants))


LISTED = (TypeKind.INT8, TypeKind.STRING, TypeKind.UUID, TypeKind.DATE)
"""Element types that convert to the column's type without a loss, and whose values are equal where
their keys are."""


def _listed(tree: exp.In, listed: ConstantList, scope: Scope, relation: str | None) -> ElementOf:
    """`column IN (list)` of which the tree has only the first constant."""
    column, type = _compared_column(tree.this, scope, relation)
    items = listed.items()
    given = any(isinstance(item, Given) for item in items)
    numbers = any(isinstance(item, int) for item in items)
    if type.enum is None and (type == INT8 if numbers else type.kind in LISTED):
        array = _array_of(items, array_of(type), given=given)
        if array is not None:
            return ElementOf(column=column, type=type, array=array, count=len(items))
    if given:
        raise NotNative("parameters that are converted one by one")
    return _one_of(column, type, listed.trees(), scope, relation)


def _array_of(items: list[Item], type: ColumnType, *, given: bool) -> Scalar | None:
    """The array of the items; None where a constant is none of its elements: which of them, the way
    by trees says."""
    try:
        datum = coerce(type, [item for item in items if not isinstance(item, Given)])
    except SQLError:
        return None
    if not given:
        return Scalar(type, lambda values, bindings: datum, True)

    def evaluate(values: Values, bindings: Bindings) -> object:
        parameters = bindings.parameters
        filled = [
            parameters[item.number - 1] if isinstance(item, Given) else item for item in items
        ]
        return coerce(type, filled)

    return Scalar(type, evaluate, True)


def _element_of(tree: exp.Expr, scope: Scope, relation: str | None) -> ElementOf:
    column, type = _compared_column(tree.this, scope, relation)
    array = compile_scalar(tree.expression.this, scope, relation)
    elements = None if array.type is None else array.type.element
    if type.kind not in LISTED or type.enum is not None or not array.constant:
        raise NotNative("elements that are not compared as they are given")
    if array.type is not None and (elements is None or elements.kind is not type.kind):
        raise NotNative("elements of another type")
    return ElementOf(column=column, type=type, array=adapt(array, array_of(type)))


def _column(tree: exp.Expr, scope: Scope, relation: str | None) -> tuple[int, ColumnType]:
    inner = tree.unnest()
    if not isinstance(inner, exp.Column):
        raise NotNative("not a column")
    compile_scalar(inner, scope, relation)  # says whether the name is one of ours
    return scope[folded(inner.this)]


def _compared_column(tree: exp.Expr, scope: Scope, relation: str | None) -> tuple[int, ColumnType]:
    column, type = _column(tree, scope, relation)
    if type.kind is _UNEQUAL_TEXTS:
        raise NotNative("documents, of which equal ones have several texts")
    return column, type


def _constant(
    tree: exp.Expr, type: ColumnType, scope: Scope, relation: str | None, *, alone: bool = True
) -> Scalar:
    scalar = compile_scalar(tree, scope, relation)
    if not scalar.constant:
        raise NotNative("a comparison of two columns")
    casts = () if isinstance(tree, exp.Literal | exp.Parameter) else find_all(tree, exp.Cast)
    targets = [target for cast in casts if (target := type_of_cast(cast)) is not None]
    if any(target.kind is TypeKind.CHAR for target in targets):
        raise NotNative("a CHAR, beside which the blanks of a VARCHAR mean nothing")
    if type.kind is TypeKind.FLOAT4 and scalar.type not in (None, type):
        if not alone:
            raise NotNative("a list of numbers, which have one type with the column")
        type = FLOAT8
    return adapt(scalar, type, position=position_of(tree))


def compile_condition(tree: exp.Expr, scope: Scope, relation: str) -> Scalar:
    """The scalar of conjuncts that is false where one of them is, and true of NULL. Raises
    NotNative."""
    predicates = compile_predicates(tree, scope, relation)
    if any(_compares_with_null(predicate) for predicate in predicates):
        raise NotNative("NULL among the constants")
    return Scalar(BOOL, partial(_holds, predicates), False)


def _compares_with_null(predicate: Predicate) -> bool:
    match predicate:
        case Comparison(constant=constant):
            return constant.value(EPOCH) is None
        case ElementOf(array=array):
            found = array.value(EPOCH)
            return not isinstance(found, list) or None in found
    return False


def _holds(predicates: Sequence[Predicate], row: Values, bindings: Bindings) -> bool:
    return all(
        (row[predicate.column] is None and not isinstance(predicate, NullTest))
        or _bound(predicate, bindings)(row)
        for predicate in predicates
    )


def bind_predicates(predicates: Sequence[Predicate], bindings: Bindings) -> Test:
    """The test that a row must pass."""
    tests = [_bound(predicate, bindings) for predicate in predicates]
    if len(tests) == 1:
        return tests[0]
    return lambda values: all(test(values) for test in tests)


def _bound(predicate: Predicate, bindings: Bindings) -> Test:
    column = predicate.column
    match predicate:
        case NullTest(null=wanted):
            return lambda values: (values[column] is None) is wanted
        case ElementOf(type=type, array=array):
            elements = [_rank(type, element) for element in elements_of(array, bindings)]
            known = elements if type.kind is TypeKind.ARRAY else frozenset(elements)
            if type.kind in FLOATS or type.enum is not None:
                return lambda values: _rank(type, values[column]) in known
            return lambda values: values[column] in known
        case Comparison(type=type, comparator=comparator):
            constant = _rank(type, predicate.constant.value(bindings))
            _, compare = comparator.value
            if constant is None:
                return lambda values: False
            if type.kind in FLOATS or type.enum is not None:
                return lambda values: (
                    values[column] is not None and compare(_rank(type, values[column]), constant)
                )
            return lambda values: values[column] is not None and compare(values[column], constant)


def elements_of(array: Scalar, bindings: Bindings) -> list[Datum]:
    """Returns the elements of an array of one dimension without its NULLs."""
    value = array.value(bindings)
    assert value is None or isinstance(value, list), value
    return [element for element in value or () if element is not None]


def _rank(type: ColumnType, value: object) -> Any:
    """Returns the key of `value` in comparisons: NaN is above all floats, labels have a mark."""
    if type.enum is not None and isinstance(value, str):
        return type.enum.mark_by_label[value]
    if type.kind not in FLOATS or value is None:
        return value
    return (1, 0.0) if value != value else (0, value)
