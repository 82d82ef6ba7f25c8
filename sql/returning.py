"""RETURNING: what a statement that writes tells of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from ..catalog.column_types import ColumnType, coerce
from ..catalog.descriptor import TableDescriptor
from ..catalog.errors import SQLError
from ..catalog.type_kinds import TypeKind
from .binder import check_columns, row_scope
from .parser import folded, position_of, text_of
from .plans import Projection
from .postgres.output_names import output_name
from .results import ResultColumn
from .scalars import NotNative, Scalar, compile_scalar


def _canonical(scalar: Scalar, type: ColumnType) -> Scalar:
    """A result has the digits that its type says: arithmetic on decimals gives more."""
    if type.kind is not TypeKind.DECIMAL:
        return scalar
    evaluate = scalar.evaluate
    return Scalar(
        type, lambda values, bindings: coerce(type, evaluate(values, bindings)), scalar.constant
    )


def projection(
    items: Sequence[exp.Expr], descriptor: TableDescriptor, relation: str | None
) -> Projection:
    """RETURNING. Raises SQLError 0A000 for what is not evaluated row by row."""
    return projection_over(items, descriptor, relation or descriptor.name, ())


def projection_over(
    items: Sequence[exp.Expr],
    descriptor: TableDescriptor,
    relation: str,
    others: Sequence[tuple[str, ColumnType]],
) -> Projection:
    """The same over rows with more values behind the table's own, by names that are unique."""
    scope = dict(row_scope(descriptor))
    width, types = len(scope), dict(others)
    scope.update((name, (width + place, type.broad)) for place, (name, type) in enumerate(others))
    columns: list[ResultColumn] = []
    scalars: list[Scalar] = []
    for item in items:
        inner = item.this if isinstance(item, exp.Alias) else item
        star = isinstance(inner, exp.Star) or isinstance(inner.this, exp.Star)
        trees = [exp.column(column.name, quoted=True) for column in descriptor.shown_columns]
        for tree in trees if star else [inner]:
            if not others:
                check_columns(tree, descriptor, relation)
            try:
                scalar = compile_scalar(tree, scope, relation)
            except NotNative:
                raise SQLError(
                    "0A000",
                    f"RETURNING takes columns and arithmetic on them, not {text_of(tree)}",
                    position=position_of(tree),
                ) from None
            name = output_name(tree if star else item)
            type = scalar.type or ColumnType(TypeKind.STRING)
            columns.append(ResultColumn(name, _declared(tree, descriptor, types) or type))
            scalars.append(_canonical(scalar, type))
    return Projection(tuple(columns), tuple(scalars))


def _declared(
    tree: exp.Expr, descriptor: TableDescriptor, others: Mapping[str, ColumnType]
) -> ColumnType | None:
    """The type of an item that is a column; None for all else."""
    if not isinstance(tree, exp.Column):
        return None
    column = descriptor.find_column(folded(tree.this))
    return others.get(folded(tree.this)) if column is None else column.type
