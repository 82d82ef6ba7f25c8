"""Trees that mean what PostgreSQL reads, where sqlglot, or DuckDB behind it, reads something else.

Rows:

    count(t.*), to_jsonb(t.*)           count(t), to_jsonb(t): the star of one argument is the row
    (a, b) IN (VALUES (1, 2), (3, 4))   (a, b) IN ((1, 2), (3, 4))
    a = ANY (VALUES (1), (3))           a IN (1, 3)

Derived tables without an alias; what reads a tree knows the tables of a FROM by their names, and so
two without one would be one:

    FROM (SELECT 1 AS x), (VALUES (2)), LATERAL (SELECT 3), unnest(a)
    FROM (SELECT 1 AS x), (VALUES (2)) AS "~1", LATERAL (SELECT 3) AS "~2", unnest(a) AS "unnest"

Words that stand for functions:

    user, current_role      CURRENT_USER: reserved words, unless they are quoted

Arrays:

    1 = ANY (ARRAY(SELECT …))   1 = ANY (SELECT …)
"""

from __future__ import annotations

from sqlglot import exp

from ...syntax.tree_names import CALLED, alias_named
from ...syntax.walks import find_all

# Rows.

_LISTS = (exp.Select, exp.Returning, exp.Tuple)
"""The nodes in which a star stands for several columns."""


def plain_rows(tree: exp.Expr) -> exp.Expr:
    """The tree with rows in the form that everything behind it reads."""
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


# Derived tables.


def plain_derived(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with names for derived tables that have none, where several stand side by
    side."""
    for select in list(tree.find_all(exp.Select)):
        unnamed = [table for table in _tables_of(select) if _unnamed(table)]
        for number, table in enumerate(unnamed if len(unnamed) > 1 else ()):
            name = _function(table) or (f"~{number}" if number else None)
            if name is not None:
                table.set("alias", alias_named(name))
    return tree


def _tables_of(select: exp.Select) -> list[exp.Expr]:
    begins = select.args.get("from_")
    joins = [*(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
    return [one if isinstance(one, exp.Lateral) else one.this for one in (begins, *joins) if one]


def _unnamed(table: exp.Expr) -> bool:
    if table.alias:
        return False
    if isinstance(table, exp.Subquery):
        return not isinstance(table.this, exp.Table)  # a JOIN in parentheses
    return isinstance(table, exp.Values | exp.Lateral) or _function(table) is not None


def _function(table: exp.Expr) -> str | None:
    """The name of a function in FROM, which is its table's."""
    call = table.this if isinstance(table, exp.Table | exp.Lateral) else table
    if isinstance(call, exp.Anonymous):
        return call.name.lower()
    return call.sql_name().lower() if isinstance(call, exp.Func) else None


# Words that stand for functions.

USER_WORDS = frozenset({"user", "current_role"})


def plain_users(tree: exp.Expr) -> exp.Expr:
    """The tree with calls for words that are reserved, unless they are quoted."""
    made: exp.Expr = exp.Paren(this=tree)
    for node in list(find_all(made, exp.Column)):
        word = node.name.lower()
        plain = isinstance(node.this, exp.Identifier) and not node.this.quoted
        if plain and node.args.get("table") is None and word in USER_WORDS:
            user = exp.CurrentUser()
            user.meta[CALLED] = word
            node.replace(user)
    found: exp.Expr = made.this
    return found.pop()  # a tree whose parent is nothing of its own is no result any more


# Arrays.

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def plain_arrays(tree: exp.Expr) -> exp.Expr:
    """The tree with queries in the place of arrays of them: `= ANY (ARRAY(SELECT …))` asks for a
    row of the query, which DuckDB would take the array for. Patterns are asked for in an array."""
    for some in list(find_all(tree, exp.Any, exp.All)):
        inner = some.this.unnest()
        listed = isinstance(inner, exp.Array) and len(inner.expressions) == 1
        query = inner.expressions[0] if listed else None
        if isinstance(query, exp.Query) and isinstance(some.parent, _COMPARISONS):
            some.set("this", query if isinstance(query, exp.Subquery) else exp.Subquery(this=query))
    return tree
