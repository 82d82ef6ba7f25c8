"""Scalar expressions that are evaluated in Python, row by row.

Constants, parameters, columns of one row, `+`, `-`, `*` and `||` of them, and casts of constants.
What is not among these raises `NotNative`, and whoever planned it hands the statement to DuckDB.

A scalar without a type (`None`) is a text literal, a NULL, or a parameter that nobody gave a type:
it takes the type of what it meets, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from ...catalog.descriptors.elements import ForeignKey
from ...catalog.values.column_types import (
    BOOL,
    DATE,
    DECIMAL,
    INT8,
    INT8_MAX,
    STRING,
    TIMESTAMPTZ,
    ColumnType,
    Datum,
    array_of,
    coerce,
    truncate,
)
from ...catalog.values.errors import SQLError
from ...catalog.values.literals import read_decimal
from ...catalog.values.physical import Physical
from ...catalog.values.type_kinds import TypeKind
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.process.fibre import give_way
from ...kvlayer.transaction_modes import WhenLocked
from ..builtins.signatures import NUMBERS, SIGNS
from ..results.arithmetic import negate, operation
from ..results.as_of import datetime_of
from ..results.results import QueryEvaluator
from ..results.table_reads import Images, Trace, VirtualRows
from ..syntax.statement import at
from ..syntax.trees import CAST_TYPE, CUT_BLANKS, folded, position_of, unsupported
from .calls.client_functions import CLIENT_NODES, SOMEBODY, ClientFacts, Fact, client_fact
from .calls.row_calls import (
    Generators,
    SessionCalls,
    ask_sequence,
    is_sequence_call,
    sequence_arguments,
)

SLOT = "slot"
"""Marks a number of a statement's tree that is another one in other texts of the same shape."""


class NotNative(Exception):
    """The expression is not one that this module evaluates. Never reaches a client."""


class Deferral(Protocol):
    """The foreign keys that the transaction checks at its commit, and the rows to check."""

    def defers(self, table_id: int, key: ForeignKey) -> bool:
        """Whether a foreign key of a table is looked at when the transaction commits."""
        ...

    def note(
        self,
        table_id: int,
        key: ForeignKey,
        values: Mapping[tuple[Datum, ...], tuple[Physical, ...]],
        *,
        inserted: bool,
    ) -> None:
        """Rows refer with `values`, given as they are stored too, to rows that are not there: they
        were `inserted` so, or what they refer to is gone. Raises SQLError 54000 for too many."""
        ...


class Bindings(Struct, frozen=True):
    """The values that a plan is run with: parameters as given, and `at`, the statement's time.

    `virtual_rows` is asked where the plan reads virtual tables, `images` where whole ones; the
    `generators` are for whatever writes rows, `trace` is told what is read, `calls` carries out
    `SessionCalls`. `slots` are the text's numbers, where the plan is that of its shape. `deferral`
    is that of the open transaction; a statement by itself is looked at when it is done. `analytics`
    computes what Python does not. `when_locked` is what becomes of rows that others have locked."""

    parameters: Sequence[object]
    at: Timestamp
    virtual_rows: VirtualRows | None = None
    generators: Generators | None = None
    client: ClientFacts = SOMEBODY
    images: Images | None = None
    trace: Trace | None = None
    slots: tuple[int, ...] = ()
    calls: SessionCalls | None = None
    deferral: Deferral | None = None
    analytics: QueryEvaluator | None = None
    when_locked: WhenLocked = WhenLocked.WAIT

    @property
    def now(self) -> datetime:
        """The statement's time in UTC, which is now()."""
        return datetime_of(self.at)

    @property
    def evaluator(self) -> QueryEvaluator:
        assert self.analytics is not None, self
        return self.analytics

    def given(self, parameters: Sequence[object]) -> Bindings:
        """Returns these values with other parameters."""
        return replace(self, parameters=parameters)


EPOCH = Bindings((), ZERO)
"""The bindings of what depends on no parameter and no time."""

Values = Sequence[Datum]
Evaluator = Callable[[Values, Bindings], object]


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression ready to run. `constant` says that it needs no row."""

    type: ColumnType | None
    evaluate: Evaluator
    constant: bool

    def value(self, bindings: Bindings) -> object:
        assert self.constant, self
        return self.evaluate((), bindings)


Scope = Mapping[str, tuple[int, ColumnType]]
"""The columns that may be named: position in the row, and type."""


INT4_TYPE = exp.DataType.Type.MEDIUMINT
"""The type that `sql.parse.lexer` reads INT4 as."""


def compile_scalar(tree: exp.Expr, scope: Scope, relation: str | None = None) -> Scalar:
    """The scalar of `tree`. Columns may be qualified by `relation`. Raises NotNative."""
    give_way()
    match tree:
        case exp.Paren():
            return compile_scalar(tree.this, scope, relation)
        case exp.Literal():
            if (slot := tree.meta.get(SLOT)) is None:
                return _literal(tree)
            return Scalar(INT8, lambda values, bindings: bindings.slots[slot], True)
        case exp.Array():
            return _array([compile_scalar(item, scope, relation) for item in tree.expressions])
        case exp.Null():
            return constant(None, None)
        case exp.Boolean():
            return constant(BOOL, bool(tree.this))
        case exp.Parameter():
            return _parameter(tree)
        case exp.Column():
            return _column(tree, scope, relation)
        case exp.Anonymous() if is_sequence_call(tree):
            return _drawn(tree)
        case _ if isinstance(tree, CLIENT_NODES) and (told := client_fact(tree)) is not None:
            return _of_client(*told)
        case exp.CurrentTimestamp() if not tree.this:
            return Scalar(TIMESTAMPTZ, lambda values, bindings: bindings.now, True)
        case exp.CurrentDate() if not tree.this:
            return Scalar(DATE, lambda values, bindings: bindings.now.date(), True)
        case exp.Neg():
            return _negated(compile_scalar(tree.this, scope, relation))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.DPipe():
            left = compile_scalar(tree.this, scope, relation)
            right = compile_scalar(tree.expression, scope, relation)
            if isinstance(tree, exp.DPipe):
                return _concatenation(left, right)
            return _arithmetic(SIGNS[type(tree)], left, right)
        case exp.Cast() if not isinstance(tree, exp.TryCast):
            return _cast(tree, compile_scalar(tree.this, scope, relation))
    raise NotNative(type(tree).__name__)


def evaluates(tree: exp.Expr) -> bool:
    """Whether an expression without columns is one that this module evaluates."""
    try:
        compile_scalar(tree, {})
    except NotNative:
        return False
    return True


def _of_client(fact: Fact, given: Sequence[exp.Expr]) -> Scalar:
    arguments = [compile_scalar(argument, {}) for argument in given]
    return Scalar(
        fact.type,
        lambda values, bindings: fact.tell(
            bindings.client, [argument.value(bindings) for argument in arguments]
        ),
        True,
    )


def adapt(scalar: Scalar, type: ColumnType, *, position: int | None = None) -> Scalar:
    """`scalar` as a canonical datum of `type`, by implicit conversion only.

    Literals are converted now, so that what is wrong with them is said while planning. Raises
    NotNative where the types need more than that, SQLError where the text is no such value.
    """
    kind = scalar.type.kind if scalar.type is not None else None
    _refuse_least_int8(scalar)
    if kind is TypeKind.ARRAY and type.element is not None and scalar.type != type:
        datum = scalar.evaluate.datum if isinstance(scalar.evaluate, _Constant) else None
        return coerced(scalar, type) if datum is None else constant(type, coerce(type, datum))
    if kind is type.kind and (kind is not TypeKind.DECIMAL or not scalar.constant):
        return scalar
    if kind is not None and (kind, type.kind) not in _IMPLICIT:
        raise NotNative(f"{kind} to {type}")
    evaluate = scalar.evaluate
    if not scalar.constant:
        return coerced(scalar, type)
    if not isinstance(evaluate, _Constant):
        return Scalar(type, lambda values, bindings: _exact(type, evaluate((), bindings)), True)
    with at(position):
        return constant(type, _exact(type, evaluate.datum))


def coerced(scalar: Scalar, type: ColumnType) -> Scalar:
    """`scalar` converted to a datum of `type` when it is evaluated."""
    evaluate = scalar.evaluate
    return Scalar(
        type, lambda values, bindings: coerce(type, evaluate(values, bindings)), scalar.constant
    )


_IMPLICIT = {
    (TypeKind.INT8, TypeKind.DECIMAL),
    (TypeKind.INT8, TypeKind.FLOAT8),
    (TypeKind.DECIMAL, TypeKind.FLOAT8),
    (TypeKind.FLOAT4, TypeKind.FLOAT8),
    (TypeKind.DECIMAL, TypeKind.DECIMAL),
}
_CAST = _IMPLICIT | {
    (TypeKind.INT8, TypeKind.FLOAT4),
    (TypeKind.DECIMAL, TypeKind.FLOAT4),
    (TypeKind.FLOAT8, TypeKind.FLOAT4),
}


def _exact(type: ColumnType, value: object) -> Datum:
    """The datum of a constant that a column is compared with.

    A decimal keeps all its digits, which may be more than the column has: rounded, it would equal
    values that it does not equal.
    """
    if type.kind is not TypeKind.DECIMAL or value is None:
        return coerce(type, value)
    match value:
        case str():
            number = read_decimal(value)
        case float():
            number = Decimal(repr(float(value)))
        case int() | Decimal() if not isinstance(value, bool):
            number = Decimal(value)
        case _:
            return coerce(type, value)
    return number if number.is_finite() else coerce(type, number)


class _Constant:
    """An evaluator that returns the same datum each time."""

    __slots__ = ("datum",)

    def __init__(self, datum: Datum) -> None:
        self.datum = datum

    def __call__(self, values: Values, bindings: Bindings) -> object:
        return self.datum


def constant(type: ColumnType | None, datum: Datum) -> Scalar:
    """The scalar of a datum."""
    return Scalar(type, _Constant(datum), True)


def constant_datum(scalar: Scalar) -> Datum:
    """The datum of a scalar that depends on nothing. Raises NotNative for any other."""
    if not isinstance(scalar.evaluate, _Constant):
        raise NotNative("not a constant")
    return scalar.evaluate.datum


def _literal(tree: exp.Literal) -> Scalar:
    text: str = tree.this
    if tree.is_string:
        return constant(None, text)
    if text.isdecimal() and int(text) <= INT8_MAX + 1:
        # One more than fits, so that the least INT8 can be written as the negation it is.
        return constant(INT8, int(text))
    try:
        number = Decimal(text)
    except ArithmeticError:
        raise NotNative(text) from None
    return constant(DECIMAL, number)


def _array(items: Sequence[Scalar]) -> Scalar:
    """ARRAY[…] of items that have one type, or will take it."""
    types = {item.type for item in items} - {None}
    if len(types) > 1 or any(type is not None and type.element is not None for type in types):
        raise NotNative("an array of several types")
    type = array_of(types.pop() or STRING) if types else None
    evaluators = [item.evaluate for item in items]
    if all(isinstance(evaluate, _Constant) for evaluate in evaluators):
        return constant(type, [evaluate.datum for evaluate in evaluators])  # type: ignore[attr-defined]
    return Scalar(
        type,
        lambda values, bindings: [evaluate(values, bindings) for evaluate in evaluators],
        all(item.constant for item in items),
    )


def _drawn(call: exp.Anonymous) -> Scalar:
    """A call of a sequence's function."""
    arguments = [compile_scalar(argument, {}) for argument in sequence_arguments(call)]

    def evaluate(values: Values, bindings: Bindings) -> object:
        assert bindings.generators is not None, "a sequence is asked without generators"
        given = [argument.evaluate(values, bindings) for argument in arguments]
        return ask_sequence(call.name.lower(), bindings.generators, given)

    return Scalar(INT8, evaluate, all(argument.constant for argument in arguments))


def parameter_number(tree: exp.Parameter) -> int:
    return int(tree.this.this)


def _parameter(tree: exp.Parameter) -> Scalar:
    index = parameter_number(tree) - 1
    if tree.meta.get(CUT_BLANKS):
        return Scalar(
            None, lambda values, bindings: _without_blanks(bindings.parameters[index]), True
        )
    return Scalar(None, lambda values, bindings: bindings.parameters[index], True)


def _without_blanks(value: object) -> object:
    """A parameter beside a CHAR(n), or an array of such."""
    if isinstance(value, list):
        return [_without_blanks(item) for item in value]
    return value.rstrip(" ") if isinstance(value, str) else value


def _column(tree: exp.Column, scope: Scope, relation: str | None) -> Scalar:
    qualifier = tree.args.get("table")
    if qualifier is not None and (relation is None or folded(qualifier) != relation):
        raise NotNative("qualified")
    if not isinstance(tree.this, exp.Identifier):
        raise NotNative("star")
    found = scope.get(folded(tree.this))
    if found is None:
        raise NotNative(tree.name)
    position, type = found
    return Scalar(type, lambda values, bindings: values[position], False)


def _negated(operand: Scalar) -> Scalar:
    if operand.type is None or operand.type.kind not in NUMBERS:
        raise NotNative("negation")
    type, evaluate = operand.type, operand.evaluate
    if isinstance(evaluate, _Constant):
        return constant(type, negate(type.kind, evaluate.datum))
    return Scalar(
        type,
        lambda values, bindings: negate(type.kind, evaluate(values, bindings)),  # type: ignore[arg-type]
        operand.constant,
    )


def _arithmetic(operator: str, left: Scalar, right: Scalar) -> Scalar:
    left, right = _typed(left, right), _typed(right, left)
    if left.type is None or right.type is None:
        raise NotNative("arithmetic without a type")
    found = operation(operator, left.type.kind, right.type.kind)
    if found is None:
        raise NotNative("arithmetic on other types")
    type, compute = found
    first, second = left.evaluate, right.evaluate
    _refuse_least_int8(left, right)
    return Scalar(
        type,
        lambda values, bindings: compute(
            first(values, bindings),  # type: ignore[arg-type]
            second(values, bindings),  # type: ignore[arg-type]
        ),
        left.constant and right.constant,
    )


def _refuse_least_int8(*operands: Scalar) -> None:
    """9223372036854775808 is an INT8 only behind a minus sign."""
    for operand in operands:
        if isinstance(operand.evaluate, _Constant) and operand.evaluate.datum == INT8_MAX + 1:
            raise NotNative("a literal beyond INT8")


def _typed(scalar: Scalar, other: Scalar) -> Scalar:
    """A scalar without a type takes that of the other operand."""
    if other.type is not None and other.type.kind is TypeKind.JSONB:
        raise NotNative("what is taken from a document is none")
    if scalar.type is None and other.type is not None:
        return adapt(scalar, other.type)
    return scalar


def _concatenation(left: Scalar, right: Scalar) -> Scalar:
    if any(o.type is not None and o.type.kind is not TypeKind.STRING for o in (left, right)):
        raise NotNative("concatenation of other types")
    left, right = adapt(left, STRING), adapt(right, STRING)
    first, second = left.evaluate, right.evaluate

    def concatenate(values: Values, bindings: Bindings) -> Datum:
        head, tail = first(values, bindings), second(values, bindings)
        if head is None or tail is None:
            return None
        assert isinstance(head, str), head
        assert isinstance(tail, str), tail
        return head + tail

    return Scalar(STRING, concatenate, left.constant and right.constant)


def _cast(tree: exp.Cast, operand: Scalar) -> Scalar:
    type, source = type_of_cast(tree), operand.type
    if type == STRING and source is not None and source.kind is TypeKind.ENUM:
        return Scalar(STRING, operand.evaluate, operand.constant)  # the label, which it is
    if type is None or not operand.constant:
        raise NotNative("cast")
    broad = type.broad
    if source is not None and (source.kind, broad.kind) not in _CAST and source.kind != broad.kind:
        raise NotNative("cast between types")
    evaluate = operand.evaluate
    if type.bare:  # of the digits that are there
        return adapt(operand, type, position=position_of(tree))
    if not isinstance(evaluate, _Constant):
        return Scalar(
            broad,
            lambda values, bindings: coerce(type, truncate(type, evaluate((), bindings))),
            True,
        )
    with at(position_of(tree)):
        return constant(broad, coerce(type, truncate(type, evaluate.datum)))


def broad_type_of_cast(tree: exp.Cast) -> ColumnType | None:
    type = type_of_cast(tree)
    return None if type is None else type.broad


_REFUSED = {
    "BPCHAR": ("BPCHAR without a length", "Write TEXT, or CHAR(n)."),
    "TIMETZ": ("TIMETZ", "Write TIME, or TIMESTAMPTZ."),
}


DIGITS_HINT = "date_trunc('second', x) leaves the fraction of a second out."


def type_of_cast(tree: exp.Cast) -> ColumnType | None:
    """The column type that a cast names, or None where it is not one of ours. Raises SQLError for
    BPCHAR, which would be CHAR(1), and for TIMETZ, which is another one in DuckDB."""
    known = tree.meta.get(CAST_TYPE)
    if isinstance(known, ColumnType):
        return known
    target = tree.to
    if target.this == INT4_TYPE:
        return ColumnType(TypeKind.INT4)
    text = target.sql("postgres").replace(str(INT4_TYPE.value), "INT4")
    refused = _REFUSED.get(text.upper().removesuffix("[]"))
    if refused is not None:
        what, hint = refused
        raise unsupported(what, tree, hint)
    array = text.endswith("[]")
    name, _, arguments = text.removesuffix("[]").partition("(")
    numbers = [part.strip() for part in arguments.rstrip(")").split(",") if part.strip()]
    if not all(number.isdecimal() for number in numbers):
        return None
    try:
        type = ColumnType.from_sql(name, [int(number) for number in numbers])
    except SQLError:
        return None
    if type.precision is not None and type.kind is not TypeKind.DECIMAL:
        raise unsupported(f"a cast to {type}", tree, DIGITS_HINT)
    return array_of(type) if array else type
