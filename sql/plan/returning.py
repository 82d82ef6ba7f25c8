"""RETURNING: what a statement that writes tells of its rows, in the step that writes them.

    UPDATE t AS x SET n = n + 1 RETURNING k, n * 2 AS twice, x.v

Its items are columns of the table that is written and what Python computes of them, not of the
tables of FROM and USING. What a part of a WITH that writes returns is a table for the parts behind
it, which compute anything of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.column_types import DECIMAL, STRING
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.binder import Relations, check_columns, refuse_sets, row_scope
from ..analyze.columns.output_columns import origin_of, output_name
from ..analyze.given_tables import given_table
from ..analyze.scalars import NotNative, Scalar, coerced, compile_scalar
from ..results.results import ResultColumn
from ..syntax.statements import Delete, Update, WritingStep
from ..syntax.trees import find_all, folded, position_of, table_name, unsupported
from .plans import Projection


def projection(
    items: Sequence[exp.Expr], descriptor: TableDescriptor, relation: str | None
) -> Projection:
    """RETURNING over the rows of the table that is written, which is called `relation`. Raises
    SQLError, 0A000 for an item that takes more than Python."""
    relation = relation or descriptor.name
    scope = row_scope(descriptor)
    columns: list[ResultColumn] = []
    scalars: list[Scalar] = []
    for item in _shown(items, descriptor):
        tree = item.unalias()
        check_columns(tree, descriptor, relation)
        try:
            scalar = compile_scalar(tree, scope, relation)
        except NotNative:
            refuse_sets(tree, "RETURNING")
            raise _too_much(tree) from None
        type = scalar.type or STRING
        plain = isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier)
        if not plain and type == DECIMAL:  # how many digits there are, only DuckDB knows
            raise _too_much(tree)
        origin = origin_of(descriptor, folded(tree.this)) if plain else None
        declared = descriptor.column(folded(tree.this)).type if plain else type
        columns.append(ResultColumn(output_name(item), declared, origin))
        # A result has the digits that its type says: arithmetic on decimals gives more.
        scalars.append(coerced(scalar, type) if type.kind is TypeKind.DECIMAL else scalar)
    return Projection(tuple(columns), tuple(scalars))


def _too_much(tree: exp.Expr) -> SQLError:
    return unsupported(
        "RETURNING of more than columns, and what is computed of them row by row",
        tree,
        "Compute it of what is returned: WITH written AS (… RETURNING *) SELECT … FROM written.",
    )


def refuse_others(
    statement: Update | Delete, descriptor: TableDescriptor, relation: str, relations: Relations
) -> None:
    """Raises SQLError 0A000 where RETURNING takes what may be a column of FROM or USING."""
    sources = [one for tree in statement.sources for one in find_all(tree, exp.Table, exp.Subquery)]
    others = {source.alias_or_name for source in sources} - {relation}
    tables = [relations.get(table_name(one).parts) for one in sources if isinstance(one, exp.Table)]

    def own(column: exp.Expr) -> bool:
        if not isinstance(column, exp.Column):
            return False
        qualifier = column.args.get("table")
        if qualifier is not None:
            return folded(qualifier) not in others
        if not isinstance(column.this, exp.Identifier):
            return True
        name = folded(column.this)
        elsewhere = any(table is not None and table.find_column(name) for table in tables)
        return descriptor.find_column(name) is not None and not elsewhere

    for item in statement.returning if sources else ():
        inner = item.unalias()
        for column in [inner] if isinstance(inner, exp.Star) else find_all(inner, exp.Column):
            if not own(column):
                raise SQLError(
                    "0A000",
                    f"RETURNING beside other tables is of the columns of {relation} alone",
                    hint=f"Name them as {relation}.column, and join what is returned with other "
                    "tables: WITH written AS (…) SELECT … FROM written JOIN ….",
                    position=position_of(column),
                )


def _shown(items: Sequence[exp.Expr], descriptor: TableDescriptor) -> Iterator[exp.Expr]:
    """The items, stars written out."""
    for item in items:
        if item.unalias().is_star:
            for column in descriptor.shown_columns:
                yield exp.column(column.name, quoted=True)
        else:
            yield item


def returned_table(
    number: int, step: WritingStep, returned: Sequence[ResultColumn]
) -> TableDescriptor | None:
    """Returns the table of the rows that a step returns; None where the step has no RETURNING."""
    if not returned:
        return None
    names = [column.name for column in returned]
    if len(step.columns) > len(names):
        raise SQLError(
            "42P10",
            f'table "{step.name}" has {len(names)} columns available but {len(step.columns)} '
            "columns specified",
            position=step.position,
        )
    names[: len(step.columns)] = step.columns
    types = [column.type for column in returned]
    return given_table(number, step.name, list(zip(names, types, strict=True)))
