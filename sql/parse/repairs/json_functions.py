"""Repairs of `->` in a function's argument, and of names of sequences.

f(((doc)) -> 'a')               f(doc -> 'a'), so written by `meant_tokens`
nextval('s'::regclass)          nextval('s'): the name is looked for when it is called
"""

from __future__ import annotations

from sqlglot import exp

from ...syntax.walks import find_all


def plain_documents(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with both repaired."""
    for node in list(find_all(tree, exp.JSONExtract)):
        if isinstance(node.this, exp.Paren) and isinstance(node.this.unnest(), exp.Column):
            node.set("this", node.this.unnest())
    for call in list(find_all(tree, exp.Anonymous)):
        if call.name.lower() in ("nextval", "currval", "setval") and call.expressions:
            first = call.expressions[0]
            if isinstance(first, exp.Cast) and isinstance(first.this, exp.Literal):
                first.replace(first.this)
    return tree
