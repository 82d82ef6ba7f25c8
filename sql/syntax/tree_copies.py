"""Trees copied and taken apart at the cost of their size, giving way.

sqlglot's own copy() also copies whatever hangs on a node, by the slowest of Python's ways; what we
hang on nodes is never changed, so that here copies share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from ...kvlayer.fibre import give_way

E = TypeVar("E", bound=exp.Expr)

_NODES_PER_STEP = 8
_TAKEN = "taken"


def copied(tree: E) -> E:
    """Returns a copy of the tree; each node keeps the `meta` of its original."""
    made = _alone(tree)
    stack: list[tuple[exp.Expr, exp.Expr]] = [(tree, made)]
    count = 0
    while stack:
        count += 1
        if not count % _NODES_PER_STEP:
            give_way()
        node, copy = stack.pop()
        args = copy.args
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                part = args[key] = _alone(value)
                part.parent, part.arg_key = copy, key
                stack.append((value, part))
            elif type(value) is list:
                items = args[key] = []
                for item in value:
                    if isinstance(item, exp.Expr):
                        part = _alone(item)
                        part.parent, part.arg_key, part.index = copy, key, len(items)
                        stack.append((item, part))
                        items.append(part)
                    else:
                        items.append(item)
            else:
                args[key] = value
    return made


def _alone(node: E) -> E:
    made = node.__class__()
    if node._meta:
        made._meta = dict(node._meta)
    if node.comments:
        made.comments = list(node.comments)
    if node._type is not None:
        made._type = node._type
    return made


def wrap(node: exp.Expr, make: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Puts what `make` makes of a node in the node's place, the node itself within it: what wraps
    copies instead costs, at each level of a nest, all that is below. Returns what was made."""
    if node.parent is None:
        return make(copied(node))
    hole = exp.Null()
    node.replace(hole)
    made = make(node)
    hole.replace(made)
    return made


def dismantle(tree: exp.Expr) -> None:
    """Takes apart a tree that nobody needs any more: nodes and their parents hold one another, and
    would wait for the collector, which takes a long tree in one step."""
    waiting = [tree]
    count = 0
    while waiting:
        count += 1
        if not count % _NODES_PER_STEP:
            give_way()
        node = waiting.pop()
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                waiting.append(value)
            elif type(value) is list:
                waiting += [item for item in value if isinstance(item, exp.Expr)]
        node.args.clear()
        node.parent = None


def taken(node: E) -> E:
    """The node, taken out of its tree: for whoever discards or replaces what it was part of."""
    if node.parent is not None:
        node.replace(exp.Null())
        node.parent = node.arg_key = node.index = None
        node.meta[_TAKEN] = True
    return node


def own(tree: E) -> E:
    """The tree if it was taken out of another, else a copy of it."""
    return tree if tree.meta.pop(_TAKEN, False) else copied(tree)
