"""Scalar subqueries on pg_catalog that stand for calls: texts with places for arguments."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ...syntax.tree_names import alias_named
from ..dialect import POSTGRES


def parse_text(text: str) -> exp.Expr:
    tree = POSTGRES.parser().parse(POSTGRES.tokenize(text), text)[0]
    assert tree is not None, text
    return tree


Arguments = list[exp.Expr]
Make = Callable[[Arguments], exp.Expr]


def query(text: str) -> Make:
    """A scalar subquery; `$1` and so on stand for the arguments, NULL for those left out.

    Aliases begin with an underline, so that they hide no name of an argument.
    """
    template = f"({text})"

    def make(arguments: Arguments) -> exp.Expr:
        if any(not c.args.get("table") for a in arguments for c in a.find_all(exp.Column)):
            return _with_given(arguments, make)
        tree = parse_text(template)
        for node in list(tree.find_all(exp.Parameter)):
            number = int(str(node.this.this)) - 1
            node.replace(arguments[number].copy() if number < len(arguments) else exp.Null())
        return tree

    return make


def _with_given(arguments: Arguments, make: Make) -> exp.Expr:
    """The query over arguments computed first: a bare `oid` would be that of the query's tables."""
    names = [f"_{number}" for number in range(1, len(arguments) + 1)]
    given = exp.select(*(exp.alias_(a.copy(), n) for a, n in zip(arguments, names, strict=True)))
    over = exp.select(make([exp.column(name, table="_given") for name in names]))
    return exp.Subquery(this=over.from_(exp.Subquery(this=given, alias=alias_named("_given"))))
