"""What PostgreSQL means by `ALL (array)` and by the bounds of slices, where sqlglot reads others.

1 = ALL (a)     sqlglot reads a call of a function all(a)
a[:k]           a placeholder named k; it is a slice up to the column k
"""

from __future__ import annotations

from sqlglot import exp

_SETS: dict[str, type[exp.Any | exp.All]] = {"all": exp.All, "any": exp.Any, "some": exp.Any}


def plain_arrays(tree: exp.Expr) -> exp.Expr:
    """The tree with both in the form that everything behind it reads."""
    for node in list(tree.find_all(exp.Anonymous, exp.Bracket)):
        if isinstance(node, exp.Bracket):
            _plain_bounds(node)
            continue
        made = _SETS.get(node.name.lower())
        if made is not None and len(node.expressions) == 1 and node is not tree:
            node.replace(made(this=exp.Paren(this=node.expressions[0])))
    return tree


def _plain_bounds(node: exp.Bracket) -> None:
    for item in list(node.expressions):
        if isinstance(item, exp.Placeholder) and item.name:
            item.replace(exp.Slice(this=None, expression=exp.column(item.name)))
