"""`a.* IS DISTINCT FROM b.*`: the star of a table that is compared is its row, as `a` is."""

from __future__ import annotations

from sqlglot import exp

_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip


def rows_of_stars(tree: exp.Expr) -> exp.Expr:
    """The tree with tables' names in the place of their compared stars."""
    for star in list(tree.find_all(exp.Star)):
        column = star.parent
        if not isinstance(column, exp.Column) or column.args.get("db") is not None:
            continue
        outer = column.parent
        while isinstance(outer, exp.Paren):
            outer = outer.parent
        if isinstance(outer, _COMPARISONS):
            column.replace(exp.Column(this=column.args["table"].copy()))
    return tree
