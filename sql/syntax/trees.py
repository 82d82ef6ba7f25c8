"""sqlglot's trees: walks over them, what their names mean, errors at them, copies, and the trees of
a statement.

Walks give way, and copies cost what a tree is long. sqlglot's own copy() also copies whatever hangs
on a node, by the slowest of Python's ways; what we hang on nodes is never changed, so that copies
share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import TypeVar

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ...catalog.values.errors import SQLError
from ...kvlayer.process.fibre import give_way
from .statement import ObjectName, Syntax

E = TypeVar("E", bound=exp.Expr)
T = TypeVar("T")
S = TypeVar("S")

Tree = exp.Expr
"""An expression as sqlglot reads it."""

_NODES_PER_STEP = 8


def walk(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Every node of a tree."""
    return paced(tree.walk())


def paced(items: Iterable[T]) -> Iterator[T]:
    """The items of a pass that has little to do at each: nodes, tokens."""
    for count, item in enumerate(items):
        if not count % _NODES_PER_STEP:
            give_way()
        yield item


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
    return (node for node in paced(scope.walk()) if isinstance(node, kinds))


def stepping(items: Iterable[T]) -> Iterator[T]:
    """The items, giving way before each."""
    for item in items:
        give_way()
        yield item


# Names and marks.

CAST_TYPE = "cast_type"
"""The key, in a cast's meta, of the type that it is to, if the type's name does not tell that."""

DECLARED = "declared_type"
"""The key of the type that CREATE TABLE says of a column, or a cast of what stands for it."""

CALLED = "called"
"""The key of a column's name, in what stands for a function; empty where it has none."""

STORED = "stored"
"""Marks a query whose star leaves computed columns out, as COPY does."""

CUT_BLANKS = "cut_blanks"
"""Marks a parameter that is compared with a CHAR(n)."""


def folded(identifier: exp.Identifier) -> str:
    """The name that an identifier means: lower case unless quoted."""
    name: str = identifier.this
    return name if identifier.args.get("quoted") else name.lower()


def folded_alias(table: exp.Expr) -> str:
    """Returns the name by which a query calls an item of FROM; the empty text for none."""
    alias = table.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else table.this
    return folded(named) if isinstance(named, exp.Identifier) else ""


def alias_named(name: str, columns: Iterable[str] = ()) -> exp.TableAlias:
    """`AS name (columns)`"""
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=quoted_names(columns))


def quoted_names(names: Iterable[str]) -> list[exp.Identifier]:
    """The names as identifiers that mean them."""
    return [exp.to_identifier(name, quoted=True) for name in names]


def position_of(node: exp.Expr | None) -> int | None:
    """The position of the first identifier or literal of `node`, if sqlglot kept it."""
    if node is None:
        return None
    if isinstance(node, exp.Literal | exp.Identifier):
        start: int | None = node.meta.get("start")
        return None if start is None else start + 1
    starts = [n.meta["start"] for n in walk(node) if "start" in n.meta]
    return min(starts) + 1 if starts else None


def table_name(table: exp.Expr) -> ObjectName:
    """The name of a table reference. Raises SQLError for anything that is not one."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise SQLError("42601", "a table's name is expected", position=position_of(table))
    parts = [table.args.get("catalog"), table.args.get("db"), table.this]
    named = [part for part in parts if isinstance(part, exp.Identifier)]
    return ObjectName(tuple(map(folded, named)), position_of(named[0]) or 1)


def is_cte(table: exp.Table, name: str) -> bool:
    """Whether a WITH around a table reference has a part of that name, and it is meant."""
    within: exp.CTE | None = None
    node: exp.Expr | None = table
    while node is not None:
        if isinstance(node, exp.CTE):
            within = node
        clause = node.args.get("with_")
        if isinstance(clause, exp.With) and name in _names_before(clause, within):
            return True
        node = node.parent
    return False


def _names_before(clause: exp.With, within: exp.CTE | None) -> Iterator[str]:
    """The names that a part of a WITH sees: those before it, and its own in WITH RECURSIVE."""
    for cte in clause.expressions:
        if cte is within:
            assert within is not None, clause
            if clause.args.get("recursive"):
                yield folded(within.args["alias"].this)
            return
        assert isinstance(cte, exp.CTE), cte
        yield folded(cte.args["alias"].this)


# Errors at trees.


def unsupported(what: str, at: exp.Expr | int | None = None, hint: str | None = None) -> SQLError:
    """Returns the error (0A000) for `what`, which stands at a tree or at a position; the hint says
    what does the same."""
    position = position_of(at) if isinstance(at, exp.Expr) else at
    return SQLError("0A000", f"not supported: {what}", position=position, hint=hint)


def error_at(
    tree: exp.Expr | None, sqlstate: str, message: str, hint: str | None = None
) -> SQLError:
    """Returns an error for what stands at a tree."""
    return SQLError(sqlstate, message, position=position_of(tree), hint=hint)


# Copies.

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


# Long chains of AND, of OR and of UNION ALL, made as deep as the logarithm of their length.
#
#     a AND b AND c AND d         ((a AND b) AND c) AND d, as it is read
#                                 (a AND b) AND (c AND d), as everything behind the parser sees it
#
# Whoever visits a query of a chain looks at what is below it; on a tree that is all one side this
# costs the square of its length. The order of what is chained stays, and so does its meaning; the
# types of UNION's columns are still decided from left to right (`sql.analyze.types.conversions`).

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
    """Whether the last part of the UNION may be the recursive one."""
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


# The trees and the other parts of a statement.


def parts_in(part: object, *kinds: type[T]) -> list[T]:
    """Returns the parts of these kinds in a statement, but for those within one another."""
    found: list[T] = []
    _collect(part, kinds, found)
    return found


def _collect(part: object, kinds: tuple[type[T], ...], found: list[T]) -> None:
    if isinstance(part, kinds):
        found.append(part)
    elif isinstance(part, tuple):
        for item in part:
            _collect(item, kinds, found)
    elif isinstance(part, Syntax):
        for value in vars(part).values():
            if value:
                _collect(value, kinds, found)


def trees_in(part: object) -> list[exp.Expr]:
    """Returns the trees of a statement."""
    return parts_in(part, exp.Expr)


def with_parts(statement: S, kind: type[T], change: Callable[[T], T]) -> S:
    """The statement with what `change` makes of each of its parts of a kind."""
    made = _changed(statement, kind, change)
    assert isinstance(made, type(statement)), made
    return made


def _changed(part: object, kind: type[T], change: Callable[[T], T]) -> object:
    if isinstance(part, kind):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_changed(item, kind, change) for item in part)
    if not isinstance(part, Syntax):
        return part
    changed = {
        name: made
        for name, value in vars(part).items()
        if value and (made := _changed(value, kind, change)) is not value
    }
    return replace(part, **changed) if changed else part  # type: ignore[type-var]
