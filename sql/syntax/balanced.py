"""Long chains of AND, of OR and of UNION ALL, made as deep as the logarithm of their length.

    a AND b AND c AND d         ((a AND b) AND c) AND d, as it is read
                                (a AND b) AND (c AND d), as everything behind the parser sees it

Whoever visits a query of a chain looks at what is below it; on a tree that is all one side this
costs the square of its length. The order of what is chained stays, and so does its meaning; the
types of UNION's columns are still decided from left to right (`sql.analyze.types.common_types`).
"""

from __future__ import annotations

from sqlglot import exp

from ...kvlayer.fibre import give_way
from .walks import find_all

CHAINED = (exp.And, exp.Or, exp.Union)
INNER = "chained"
"""Marks a UNION that stands for no operator of its own: it is part of a longer chain."""
_LENGTH_MIN = 8
_PLAIN = {"this", "expression", "distinct"}


def balance(tree: exp.Expr) -> exp.Expr:
    """The tree with its long chains balanced, in place."""
    for top in list(find_all(tree, *CHAINED)):
        kind = type(top)
        if kind is exp.Union and _recursive(top):
            continue
        if _links(top, kind) and not (type(top.parent) is kind and top.arg_key == "this"):
            parts = _parts(top, kind)
            if len(parts) >= _LENGTH_MIN:
                half = len(parts) // 2
                top.set("this", _joined(parts[:half], top, kind))
                top.set("expression", _joined(parts[half:], top, kind))
    return tree


def _recursive(union: exp.Expr) -> bool:
    """Whether its last part may be the recursive one."""
    cte = union.parent
    within = cte.parent if isinstance(cte, exp.CTE) else None
    return within is not None and bool(within.args.get("recursive"))


def _links(node: exp.Expr | None, kind: type[exp.Expr]) -> bool:
    """Whether a node is a link of a chain, its clauses aside."""
    if type(node) is not kind:
        return False
    return kind is not exp.Union or node.args.get("distinct") is False


def _parts(top: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """Returns the operands of a chain, from left to right."""
    found: list[exp.Expr] = []
    node = top
    while node is top or (_links(node, kind) and _bare(node)):
        give_way()
        found.append(node.args["expression"])
        node = node.this
    found.append(node)
    return found[::-1]


def _bare(node: exp.Expr) -> bool:
    return all(name in _PLAIN or not value for name, value in node.args.items())


def _joined(parts: list[exp.Expr], top: exp.Expr, kind: type[exp.Expr]) -> exp.Expr:
    give_way()
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _joined(parts[:half], top, kind), _joined(parts[half:], top, kind)
    if kind is not exp.Union:
        return kind(this=left, expression=right)
    made = exp.Union(this=left, expression=right, distinct=False)
    made.meta[INNER] = True
    return made
