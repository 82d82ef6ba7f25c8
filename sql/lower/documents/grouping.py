"""Documents compared, ordered and grouped as PostgreSQL's btree does it.

    a = b                       jsonb_same(a) = jsonb_same(b)
    a < b, ORDER BY a           jsonb_sort_key(a) < jsonb_sort_key(b)
    SELECT a … GROUP BY a       SELECT any_value(a) … GROUP BY jsonb_same(a)
    SELECT DISTINCT a, n        SELECT DISTINCT ON (jsonb_same(a), n) a, n

Equal documents may be written with other zeros; which of them a group shows is left open. What
compares documents otherwise (BETWEEN, CASE doc WHEN, greatest(), PARTITION BY, count(DISTINCT doc),
UNION) is refused (0A000).
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.json_text import normal_json
from ...analyze.types.rows import entries
from ...analyze.types.types import Types
from ...builtins.documents.calls import JSONB, call, is_literal
from ...builtins.documents.order import same as same_text
from ...syntax.refusals import unsupported
from ...syntax.trees import is_natural, stepping

_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
NODES = (
    *_EQUALITIES, *_ORDERS, exp.In, exp.Ordered, exp.Select, exp.Between, exp.Case, exp.Nullif,
    exp.Greatest, exp.Least, exp.Window, exp.Count, exp.ArrayAgg, exp.Union, exp.Except,
    exp.Intersect, exp.Join,
)  # fmt: skip


Wrap = Callable[[exp.Expr], exp.Expr]


def same(node: exp.Expr) -> exp.Expr:
    """Returns an expression that is the same for equal documents."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast) and is_literal(inner.this):
        inner = inner.this.unnest()
    if is_literal(inner):
        return exp.Literal.string(same_text(normal_json(inner.this)))
    if isinstance(node, exp.Column):
        return call("jsonb_same", node.copy())
    return call("jsonb_same_text", node.copy())


def sort_key(node: exp.Expr) -> exp.Expr:
    """Returns an expression whose values are in the order of the documents."""
    document = exp.cast(node.copy(), "jsonb", dialect="postgres") if is_literal(node) else node
    return call("jsonb_sort_key", document.copy())


def grouped(node: exp.Expr, types: Types) -> None:
    """Lowers a node that compares, orders or groups, in place. Raises SQLError 0A000."""
    match node:
        case exp.In():
            _compare([node.this, *node.expressions, *_queried(node)], types, same)
        case exp.Ordered():
            _order(node, types)
        case exp.Select():
            _distinct(node, types)
        case _ if isinstance(node, (*_EQUALITIES, *_ORDERS)):
            wrap = same if isinstance(node, _EQUALITIES) else sort_key
            _compare([node.this, node.args["expression"]], types, wrap)
        case _:
            refuse(node, types)


def refuse(node: exp.Expr, types: Types) -> None:
    """Raises SQLError 0A000 where a node compares documents in a way that there is not."""
    for type in _compared_types(node, types):
        _refuse_array(type, node)
        if type == JSONB:
            raise unsupported(
                f"{node.key.upper()} that compares documents",
                node,
                "=, IN, <, ORDER BY, GROUP BY and SELECT DISTINCT do, and so does doc::TEXT.",
            )


def _compared_types(node: exp.Expr, types: Types) -> list[ColumnType | None]:
    """The types of what a node compares."""
    parts: list[exp.Expr] = []
    match node:
        case exp.Join():
            names = [part.name.lower() for part in node.args.get("using") or ()]
            natural = is_natural(node)
            found = types.columns_in(node.this) or [] if names or natural else []
            return [type for name, type in found if natural or name in names]
        case exp.SetOperation():
            compares = not isinstance(node, exp.Union) or node.args.get("distinct")
            return types.columns_of(node)[1] if compares else []
        case exp.Between():
            parts = [node.this, node.args["low"], node.args["high"]]
        case exp.Case():
            parts = [] if node.this is None else [node.this, *(b.this for b in node.args["ifs"])]
        case exp.Nullif():
            parts = [node.this, node.expression]
        case exp.Window():
            parts = node.args.get("partition_by") or []
        case exp.Count() | exp.ArrayAgg():
            distinct = node.this.this if isinstance(node.this, exp.Order) else node.this
            parts = distinct.expressions if isinstance(distinct, exp.Distinct) else []
        case _:
            parts = [node.this, *node.expressions]
    return [types.of(entry) for part in parts for entry in entries(part) or [part]]


def _queried(node: exp.In) -> list[exp.Expr]:
    """The item of `x IN (SELECT item …)`."""
    query = node.args.get("query")
    select = query.unnest() if query is not None else None
    if isinstance(select, exp.Subquery):
        select = select.this
    return [select.expressions[0].unalias()] if isinstance(select, exp.Select) else []


def _compare(sides: list[exp.Expr], types: Types, wrap: Wrap) -> None:
    """Puts in the place of documents what says how they compare."""
    sets = [side for side in sides if isinstance(side, exp.Any | exp.All)]
    rows = [entry for side in stepping(sides) for entry in entries(side) or ()]
    if _are_documents(rows, types) or (sets and _are_documents(sides, types)):
        what = "comparing documents within rows, or with ANY or ALL of others"
        raise unsupported(what, sides[0], "Say doc = other, or doc IN (…).")
    for side in stepping(sides):
        _refuse_array(types.of(side), side)
    if _are_documents(sides, types):
        for side in stepping(sides):
            side.replace(wrap(side))


def _are_documents(nodes: list[exp.Expr], types: Types) -> bool:
    return any(types.of(node) == JSONB for node in stepping(nodes))


def _refuse_array(type: ColumnType | None, node: exp.Expr) -> None:
    if type is not None and type.element == JSONB:
        raise unsupported(
            "comparing arrays of documents", node, "to_jsonb() makes one document of an array."
        )


def _order(node: exp.Ordered, types: Types) -> None:
    """An item of ORDER BY, which may be a name or a number of what is selected."""
    what: exp.Expr = node.this
    query = node.parent.parent if isinstance(node.parent, exp.Order) else None
    if isinstance(query, exp.Select | exp.SetOperation):
        what = _selected(query, what, types) or what
    _refuse_array(types.of(what), node.this)
    if types.of(what) != JSONB:
        return
    if isinstance(query, exp.WithinGroup | exp.SetOperation):
        hint = "Say SELECT … FROM (… UNION ALL …) AS u, and ORDER BY and LIMIT for WITHIN GROUP."
        raise unsupported("this order of documents", node, hint)
    node.this.replace(sort_key(what))


def _selected(query: exp.Query, node: exp.Expr, types: Types) -> exp.Expr | None:
    """The item that a name or a number in ORDER BY or GROUP BY stands for."""
    names, parts = types.parts_of(query)
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        place = int(node.this)
        return parts[place - 1][0] if 1 <= place <= len(parts) else None
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        return parts[names.index(node.name.lower())][0] if node.name.lower() in names else None
    return None


def group(select: exp.Select, types: Types) -> None:
    """GROUP BY documents: what is selected of a group is one of its documents."""
    group = select.args.get("group")
    if group is None:
        return
    for key in list(group.expressions):
        plain = types.of(key) is not None and isinstance(key, exp.Column)
        what = key if plain else _selected(select, key, types) or key
        _refuse_array(types.of(what), key)
        if types.of(what) != JSONB:
            continue
        written = what.copy()
        key.replace(same(written))
        holders = [*select.expressions, *(select.args.get(a) for a in ("having", "order"))]
        for holder in holders:
            if holder is not None:
                _pick(holder, written, types)


def _pick(holder: exp.Expr, document: exp.Expr, types: Types) -> None:
    """Puts one of the group's documents in the place of each use of the grouped expression."""
    for node in list(holder.walk(prune=lambda n: n == document or isinstance(n, exp.AggFunc))):
        if node == document:
            made: exp.Expr = exp.AnyValue(this=node.copy())
            types.say(made, JSONB)
            if isinstance(node, exp.Column) and isinstance(node.parent, exp.Select):
                made = exp.alias_(made, node.name, quoted=True)
            node.replace(made)


def _distinct(select: exp.Select, types: Types) -> None:
    distinct = select.args.get("distinct")
    if distinct is None:
        return
    on = distinct.args.get("on")
    if on is not None:
        for part in list(on.expressions if isinstance(on, exp.Tuple) else [on]):
            _refuse_array(types.of(part), part)
            if types.of(part) == JSONB:
                part.replace(same(part))
        return
    _, parts = types.parts_of(select)
    items = [part for (part,) in parts]
    for item in items:
        _refuse_array(types.of(item), item)
    if not _are_documents(items, types):
        return
    keys = [same(item) if types.of(item) == JSONB else item.copy() for item in items]
    distinct.set("on", exp.Tuple(expressions=keys))
