"""Rows that are compared with rows, which DuckDB orders as structs."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ..analyze.types.resolution import entries
from ..parse import position_of


def compared_rows(tree: exp.Expr) -> exp.Expr | None:
    """`(a, b) < (1, 2)` in terms of its parts: NULL where the parts leave it open."""
    if isinstance(tree, exp.In):
        return _in_rows(tree)
    left, right = entries(tree.this), entries(tree.args["expression"])
    if left is None or right is None:
        return None
    if len(left) != len(right):
        raise SQLError(
            "42601", "unequal number of entries in row expressions", position=position_of(tree)
        )
    match tree:
        case exp.EQ():
            return exp.paren(exp.and_(*_pairs(exp.EQ, left, right)), copy=False)
        case exp.NEQ():
            return exp.paren(exp.or_(*_pairs(exp.NEQ, left, right)), copy=False)
        case exp.NullSafeEQ():
            return exp.paren(exp.and_(*_pairs(exp.NullSafeEQ, left, right)), copy=False)
        case exp.NullSafeNEQ():
            return exp.paren(exp.or_(*_pairs(exp.NullSafeNEQ, left, right)), copy=False)
    strict = exp.LT if isinstance(tree, exp.LT | exp.LTE) else exp.GT
    made: exp.Expr = type(tree)(this=left[-1].copy(), expression=right[-1].copy())
    for first, second in list(zip(left, right, strict=True))[-2::-1]:
        same = exp.EQ(this=first.copy(), expression=second.copy())
        apart = strict(this=first.copy(), expression=second.copy())
        made = exp.or_(apart, exp.and_(same, made))
    return exp.paren(made, copy=False)


def _in_rows(tree: exp.In) -> exp.Expr | None:
    left = entries(tree.this)
    if left is None or not tree.expressions:
        return None
    rows = [entries(item) for item in tree.expressions]
    if any(row is None or len(row) != len(left) for row in rows):
        raise SQLError(
            "42601", "unequal number of entries in row expressions", position=position_of(tree)
        )
    tests = [exp.and_(*_pairs(exp.EQ, left, row)) for row in rows if row is not None]
    return exp.paren(exp.or_(*tests), copy=False)


def _pairs(
    operator: type[exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ],
    left: list[exp.Expr],
    right: list[exp.Expr],
) -> list[exp.Expr]:
    return [
        operator(this=first.copy(), expression=second.copy())
        for first, second in zip(left, right, strict=True)
    ]
