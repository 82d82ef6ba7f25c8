"""Expressions by themselves: those that descriptors keep as text, of defaults, computed columns
and checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from ...catalog.values.type_kinds import TypeKind
from ..syntax.trees import error_at, find_all, folded
from .dialect import POSTGRES
from .lexer import tokenize
from .queries import parse_tree
from .repairs import as_written


def parse_expression(text: str) -> exp.Expr:
    """The tree of an expression. Raises SQLError 42601."""
    return parse_tree(text, tokenize(text))


def text_of(tree: exp.Expr) -> str:
    """An expression as text that reads back as it, every name in quotes, and functions in lower
    case: SQLAlchemy, Prisma and Rails look for `nextval(` in defaults."""
    return as_written(tree).sql(POSTGRES, identify=True, normalize_functions="lower")


def cast_text(column: str, type: str) -> str:
    """`CAST("column" AS type)`, as text: sqlglot knows BYTES by PostgreSQL's name alone."""
    to = type.replace(TypeKind.BYTES.value, "BYTEA")
    return text_of(exp.cast(exp.column(column, quoted=True), to))


_NOT_OF_ONE_ROW = (
    exp.Subquery, exp.Select, exp.AggFunc, exp.Window, exp.Parameter,
    exp.ExplodingGenerateSeries, exp.GenerateSeries, exp.Unnest, exp.Explode,
)  # fmt: skip


def columns_in(tree: exp.Expr) -> tuple[str, ...]:
    """The names of the columns in an expression, each once, in the order in which they stand.

    Raises SQLError 0A000 where it reads more than one row, or a parameter.
    """
    refused = tree.find(*_NOT_OF_ONE_ROW)
    if refused is not None:
        raise error_at(
            tree, "0A000", f"an expression of one row cannot contain {refused.sql('postgres')}"
        )
    names = (folded(column.this) for column in find_all(tree, exp.Column))
    return tuple(dict.fromkeys(names))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The expression with columns by their new names."""
    tree = parse_expression(text)
    for column in list(find_all(tree, exp.Column)):
        name = names.get(folded(column.this))
        if name is not None:
            column.set("this", exp.to_identifier(name, quoted=True))
    return text_of(tree)


def uses_any(text: str, names: Iterable[str]) -> bool:
    """Whether the expression names one of the columns."""
    return not set(names).isdisjoint(columns_in(parse_expression(text)))
