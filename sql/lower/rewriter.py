"""The one rewriter of a query's tree: each node is replaced by what a rule makes of it."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ..analyze.types.types import Types
from ..syntax.walks import stepping, walk

Rule = Callable[[exp.Expr], exp.Expr | None]
"""Returns the replacement of a node whose parts have been replaced; None where the node stays."""


def rewritten(query: exp.Expr, types: Types, rule: Rule) -> exp.Expr:
    """Returns the query with its nodes replaced, in place, inner ones first. What stands for a node
    has the node's type."""
    nodes = list(walk(query))
    for node in nodes:
        types.of(node)  # before anything is replaced
    for node in stepping(reversed(nodes)):
        made = rule(node)
        if made is None or made is node:
            continue
        types.say(made, types.of(node))
        if node is query:
            query = made
        else:
            node.replace(made)
    return query
