"""Repairs of `ALL (array)`, subscripts and bounds of slices.

1 = ALL (a)     sqlglot reads a call of a function all(a)
1 = ANY (ARRAY(SELECT …))   is 1 = ANY (SELECT …)
a[:k]           a placeholder named k; it is a slice up to the column k
a[k::INT8]      k::INT8 - 1, but a[k] as it stands; it is the place that is written
"""

from __future__ import annotations

from sqlglot import exp

from ...syntax.walks import find_all

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_SETS: dict[str, type[exp.Any | exp.All]] = {"all": exp.All, "any": exp.Any, "some": exp.Any}


def plain_arrays(tree: exp.Expr) -> exp.Expr:
    """The tree with both in the form that everything behind it reads."""
    for node in reversed(list(find_all(tree, exp.Anonymous, exp.Bracket, exp.Any))):  # inner first
        if isinstance(node, exp.Any):
            _plain_query(node)
            continue
        if isinstance(node, exp.Bracket):
            _plain_bounds(node)
            _plain_place(node)
            continue
        made = _SETS.get(node.name.lower())
        if made is not None and len(node.expressions) == 1 and node is not tree:
            some = made(this=exp.Paren(this=node.expressions[0]))
            node.replace(some)
            _plain_query(some)
    return tree


def _plain_query(some: exp.Any | exp.All) -> None:
    """`= ANY (ARRAY(SELECT …))` asks for a row of the query, which DuckDB would take the array for.
    Patterns are asked for in an array."""
    inner = some.this.unnest()
    listed = isinstance(inner, exp.Array) and len(inner.expressions) == 1
    query = inner.expressions[0] if listed else None
    if isinstance(query, exp.Query) and isinstance(some.parent, _COMPARISONS):
        some.set("this", query if isinstance(query, exp.Subquery) else exp.Subquery(this=query))


def _plain_bounds(node: exp.Bracket) -> None:
    for item in list(node.expressions):
        if isinstance(item, exp.Placeholder) and item.name:
            item.replace(exp.Slice(this=None, expression=exp.column(item.name)))


def _plain_place(node: exp.Bracket) -> None:
    """A place that is computed counts from 1, whatever sqlglot knows of its type; literals are
    moved by sqlglot when they are read and when they are written, and are left to it."""
    item = node.expressions[0] if len(node.expressions) == 1 else None
    inner = item.this if isinstance(item, exp.Neg) else item
    if item is None or isinstance(inner, exp.Literal | exp.Slice | exp.Null):
        return
    (place,) = exp.apply_index_offset(node.this, [item], 1, dialect="postgres")
    if isinstance(place, exp.Add) and place.expression.name == "0":
        place = place.this
    node.set("expressions", [place.copy()])
    node.set("offset", 1)
