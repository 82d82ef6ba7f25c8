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
    exchange(node, hole)
    made = make(node)
    exchange(hole, made)
    return made


def exchange(node: exp.Expr, other: exp.Expr) -> None:
    """Puts another node, which is in no tree, in the node's place. sqlglot's own replace() costs
    what the list is long of which the node is an item, and so all items' the square of that."""
    parent, key, index = node.parent, node.arg_key, node.index
    assert parent is not None, node
    assert key is not None, node
    siblings = parent.args[key]
    if isinstance(siblings, list):
        assert index is not None, node
        assert siblings[index] is node, node
        siblings[index] = other
    else:
        parent.args[key] = other
    node.parent = node.arg_key = node.index = None
    other.parent, other.arg_key, other.index = parent, key, index
    hashed: exp.Expr | None = parent
    while hashed is not None and hashed._hash is not None:
        hashed._hash = None
        hashed = hashed.parent


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
        exchange(node, exp.Null())
        node.meta[_TAKEN] = True
    return node


def own(tree: E) -> E:
    """The tree if it was taken out of another, else a copy of it."""
    return tree if tree.meta.pop(_TAKEN, False) else copied(tree)
