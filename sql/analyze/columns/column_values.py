"""Values that statements give to columns: rows of VALUES, right sides of assignments, USING."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.descriptors.elements import Identity
from ....catalog.values.column_types import BOOL, DECIMAL, INT8, STRING, ColumnType, Datum, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import FLOATS, TypeKind
from ....kvlayer.process.fibre import give_way
from ...builtins.signatures import NUMBERS
from ...parse.constants import INT8_LENGTH, ConstantRows, read_constant
from ...syntax.statement import at
from ...syntax.trees import error_at, find_all, folded, position_of
from ..binder import column_of
from ..default_expressions import computed_given
from ..scalars import (
    SLOT,
    Bindings,
    NotNative,
    Scalar,
    Scope,
    Values,
    compile_scalar,
    constant,
    constant_datum,
    type_of_cast,
)


def refuse_computed(column: Column, item: exp.Expr) -> None:
    if column.computed is not None:
        with at(position_of(item)):
            raise computed_given(column.name)


def is_default(item: exp.Expr) -> bool:
    """DEFAULT, which sqlglot takes for a variable in VALUES and for a column in SET."""
    match item:
        case exp.Var():
            return item.name.upper() == "DEFAULT"
        case exp.Column():
            identifier = item.this
            quoted = isinstance(identifier, exp.Identifier) and identifier.args.get("quoted")
            return item.name.upper() == "DEFAULT" and not quoted
    return False


def value_for(
    item: exp.Expr, descriptor: TableDescriptor, place: int, scope: Scope, relation: str | None
) -> Scalar:
    """A value for a column, a constant as the column will hold it. Raises SQLError where it is
    none, NotNative only with a scope."""
    column = descriptor.visible_columns[place]
    try:
        scalar = compile_scalar(item, scope, relation)
    except NotNative:
        if scope:
            raise
        columns = find_all(item, exp.Column)
        found = next(column for column in columns if column.find_ancestor(exp.Query) is None)
        raise error_at(found, "42703", f'column "{found.name}" does not exist') from None
    if scalar.type == INT8 and column.type.broad == STRING:
        scalar = _digits(scalar)
    check_assignable(scalar.type, column.type, column.name, item)
    if SLOT in _written_number(item).meta:
        return Scalar(None, SlotValue(scalar, column, position_of(item)), True)
    try:
        datum = constant_datum(scalar)
    except NotNative:
        return scalar
    return constant(None, _coerced(column, datum, position_of(item)))


def _digits(scalar: Scalar) -> Scalar:
    """Returns a whole number as the text that a column of texts takes of it: Rails writes the
    versions of its migrations so."""

    def text(values: Values, bindings: Bindings) -> Datum:
        number = scalar.evaluate(values, bindings)
        return None if number is None else str(number)

    try:
        number = constant_datum(scalar)
    except NotNative:
        return Scalar(STRING, text, scalar.constant)
    return constant(STRING, None if number is None else str(number))


def _written_number(item: exp.Expr) -> exp.Expr:
    """Returns the item without its parentheses and signs."""
    while isinstance(item, exp.Paren | exp.Neg):
        item = item.this
    return item


@dataclass(frozen=True, slots=True)
class SlotValue:
    """A number that each text of its shape has another one of, as its column will hold it.

    `check` says what is wrong with it, as planning says it of a number that is no slot.
    """

    scalar: Scalar
    column: Column
    position: int | None

    def __call__(self, values: Values, bindings: Bindings) -> Datum:
        return _coerced(self.column, self.scalar.evaluate(values, bindings), self.position)

    def check(self, bindings: Bindings) -> None:
        self((), bindings)


def _coerced(column: Column, value: object, position: int | None) -> Datum:
    try:
        return coerce(column.type, value, column=column.name)
    except SQLError as error:
        error.position = error.position or position
        raise


_ASSIGNABLE = {
    **{kind: set(NUMBERS) - {kind} for kind in NUMBERS},
    TypeKind.DATE: {TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ},
    TypeKind.TIMESTAMP: {TypeKind.TIMESTAMPTZ, TypeKind.DATE},
    TypeKind.TIMESTAMPTZ: {TypeKind.TIMESTAMP, TypeKind.DATE},
}


def check_assignable(
    source: ColumnType | None, target: ColumnType, column: str, item: exp.Expr | None
) -> None:
    """Refuses an expression whose type can never be stored in the column."""
    if source is None or source == target.broad:
        return
    if source.element is not None and target.element is not None:
        check_assignable(source.element, target.element, column, item)
        return
    if source.kind is target.broad.kind and source.enum == target.enum:
        return
    if target.broad.kind not in _ASSIGNABLE.get(source.kind, ()):
        raise error_at(
            item,
            "42804",
            f'column "{column}" is of type {target} but expression is of type {source.kind.value}',
            "You will need to rewrite or cast the expression.",
        )


def check_computed(source: ColumnType | None, column: Column, item: exp.Expr) -> None:
    """Refuses an expression that cannot compute the column. A text is read as every type but those
    of `_NO_TEXTS`, as it is in INSERT."""
    if isinstance(item, exp.Literal | exp.Null):
        return
    readable = source is not None and source.kind is TypeKind.STRING
    if not readable or column.type.broad.kind in _NO_TEXTS:
        check_assignable(source, column.type, column.name, item)


_NO_TEXTS = (TypeKind.INT8, TypeKind.DECIMAL, *FLOATS, TypeKind.BOOL)
"""Types that a text takes only by a cast."""


def casts_alone(using: exp.Expr | None, column: Column, type: ColumnType) -> bool:
    """Whether USING says what is done without: `USING c::type`, which Knex, GORM and Sequelize
    write of every column whose type they change."""
    cast = None if using is None else using.unnest()
    if not isinstance(cast, exp.Cast):
        return False
    target = cast.to.sql("postgres").replace('"', "").rpartition(".")[2]
    named = type.enum is not None and target == type.enum.name
    if not named and type_of_cast(cast) != type:
        return False
    operand = cast.this.unnest()
    return isinstance(operand, exp.Column) and folded(operand.this) == column.name


def check_using(
    column: Column, type: ColumnType, source: ColumnType | None, using: exp.Expr
) -> None:
    """Refuses an expression that neither is of the column's new type nor becomes it by itself."""
    if not isinstance(using, exp.Literal | exp.Null) and type.broad.kind is not TypeKind.STRING:
        hint = "You might need to add an explicit cast."
        what = f'result of USING clause for column "{column.name}"'
        check_becomes(source, type, what, hint, using)


def check_becomes(
    source: ColumnType | None, target: ColumnType, what: str, hint: str, item: exp.Expr | None
) -> None:
    """Raises SQLError 42804 where `what` is of a type that does not become the target by itself."""
    try:
        check_assignable(source, target, what, item)
    except SQLError as error:
        message = f"{what} cannot be cast automatically to type {target}"
        raise SQLError("42804", message, hint=hint, position=error.position) from None


def assigned_column(
    descriptor: TableDescriptor, target: exp.Column, value: exp.Expr, taken: Collection[int]
) -> tuple[int, Column]:
    """The column that `SET target = value` is about, and its place. Raises SQLError 42703 for none,
    42601 for one of those that are assigned already, and 428C9 for one that takes no value."""
    position = position_of(target)
    place, column = column_of(descriptor, folded(target.this), position)
    if place in taken:
        raise SQLError(
            "42601", f'multiple assignments to same column "{column.name}"', position=position
        )
    if not is_default(value):
        refuse_computed(column, target)
        message = f'column "{column.name}" can only be updated to DEFAULT'
        _refuse_always(column, message, target)
    return place, column


def refuse_inserted(column: Column, overriding: bool, item: exp.Expr | None = None) -> None:
    """Raises SQLError 428C9 where an INSERT may not give the column a value, unless it says
    OVERRIDING SYSTEM VALUE."""
    if not overriding:
        message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
        _refuse_always(column, message, item, "Use OVERRIDING SYSTEM VALUE to override.")


def _refuse_always(
    column: Column, message: str, item: exp.Expr | None, hint: str | None = None
) -> None:
    if column.identity is Identity.ALWAYS:
        raise SQLError(
            "428C9",
            message,
            detail=f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            hint=hint,
            position=position_of(item),
        )


# Rows of constants, without a tree for each: what is wrong with one is said by the way that trees
# go, for which the rows are taken again in their order.

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
        value: object = read_constant(item)
        if value.__class__ is int and column.type.broad == STRING:
            value = str(value)
        kind = value.__class__
        if kind not in kinds:
            check_assignable(_TYPES.get(kind), column.type, column.name, None)
            kinds.add(kind)
        found.append(coerce(column.type, value, column=column.name))
    return found


def _integers(written: list[str]) -> list[Datum] | None:
    """Numbers that are INT8s whatever their digits are; None where there is anything else."""
    try:
        return list(map(int, written)) if len(max(written, key=len)) < INT8_LENGTH else None
    except ValueError:
        return None


_TYPES: dict[type[object], ColumnType] = {int: INT8, Decimal: DECIMAL, bool: BOOL}


def _told_in_order(
    rows: ConstantRows, descriptor: TableDescriptor, wanted: Sequence[tuple[int, int]]
) -> dict[int, list[Datum]]:
    """The columns' values by trees, row by row: raises what is wrong with the first wrong row."""
    columns: dict[int, list[Datum]] = {place: [] for _, place in wanted}
    for row in rows.rows():
        for number, place in wanted:
            scalar = value_for(row[number], descriptor, place, {}, None)
            columns[place].append(constant_datum(scalar))
    return columns
