"""Rows in places where sqlglot, or DuckDB behind it, reads something else.

count(t.*), to_jsonb(t.*)           count(t), to_jsonb(t): the star of one argument is the row
(a, b) IN (VALUES (1, 2), (3, 4))   (a, b) IN ((1, 2), (3, 4))
a = ANY (VALUES (1), (3))           a IN (1, 3)
"""

from __future__ import annotations

from sqlglot import exp

from ...syntax.walks import find_all

_LISTS = (exp.Select, exp.Returning, exp.Tuple)
"""Where a star stands for several columns."""


def plain_rows(tree: exp.Expr) -> exp.Expr:
    """The tree with these in the form that everything behind it reads."""
    for node in list(find_all(tree, exp.Column, exp.In, exp.EQ)):
        match node:
            case exp.Column(this=exp.Star()):
                _plain_star(node)
            case exp.In(expressions=[exp.Values() as values]) if _plain(values):
                node.set("expressions", _entries(values))
            case exp.EQ(expression=exp.Any() as among):
                values = among.this.unnest()
                if isinstance(values, exp.Values) and _plain(values):
                    made = exp.In(this=node.this, expressions=_entries(values))
                    if node is tree:
                        return made
                    node.replace(made)
    return tree


def _plain_star(star: exp.Column) -> None:
    row = isinstance(star.parent, exp.Anonymous) and star.parent.name.upper() == "ROW"
    named = star.args.get("table")
    if named is not None and not row and not isinstance(star.parent, (*_LISTS, type(None))):
        star.replace(exp.Column(this=named))


def _plain(values: exp.Values) -> bool:
    """Whether they are rows of one width, and no more is said of them."""
    widths = {len(row.expressions) for row in values.expressions}
    said = [name for name, part in values.args.items() if part and name != "expressions"]
    return not said and len(widths) == 1


def _entries(values: exp.Values) -> list[exp.Expr]:
    rows = [row.copy() for row in values.expressions]
    return [row.expressions[0] if len(row.expressions) == 1 else row for row in rows]
