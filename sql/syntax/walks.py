"""Walks over trees that give way: sqlglot's own order, level by level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeVar

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ...kvlayer.fibre import give_way

E = TypeVar("E", bound=exp.Expr)
T = TypeVar("T")

_NODES_PER_STEP = 8


def walk(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Every node of a tree."""
    for count, node in enumerate(tree.walk()):
        if not count % _NODES_PER_STEP:
            give_way()
        yield node


def find_all(tree: exp.Expr, *kinds: type[E]) -> Iterator[E]:
    """The nodes of these kinds. Half as long as over `walk`: names and constants are half of a
    tree, and where they are not looked for they are passed by."""
    skipped = _leaves_beside(kinds)
    waiting = [tree]
    for count, node in enumerate(waiting):
        if isinstance(node, kinds):
            give_way()
            yield node
        elif not count % _NODES_PER_STEP:
            give_way()
        for part in node.args.values():
            if type(part) is list:
                for item in part:
                    if type(item) not in skipped and isinstance(item, exp.Expr):
                        waiting.append(item)
            elif type(part) not in skipped and isinstance(part, exp.Expr):
                waiting.append(part)


_LEAVES = (exp.Identifier, exp.Literal, exp.Null, exp.Boolean)


@cache
def _leaves_beside(kinds: tuple[type[exp.Expr], ...]) -> frozenset[type[object]]:
    """The classes of nodes that are of none of these kinds, and have no nodes in them."""
    return frozenset(leaf for leaf in _LEAVES if not issubclass(leaf, kinds)) | {type(None)}


def find_in_scope(scope: Scope, *kinds: type[E]) -> Iterator[E]:
    """The nodes of these kinds that belong to a scope, as sqlglot's `Scope.find_all`."""
    for count, node in enumerate(scope.walk()):
        if not count % _NODES_PER_STEP:
            give_way()
        if isinstance(node, kinds):
            yield node


def stepping(items: Iterable[T]) -> Iterator[T]:
    """The items, giving way before each."""
    for item in items:
        give_way()
        yield item
