"""Documents compared, ordered and grouped as PostgreSQL's btree does it.

    a = b                       jsonb_same(a) = jsonb_same(b)
    a < b, ORDER BY a           jsonb_sort_key(a) < jsonb_sort_key(b)
    SELECT a … GROUP BY a       SELECT any_value(a) … GROUP BY jsonb_same(a)
    SELECT DISTINCT a, n        SELECT DISTINCT ON (jsonb_same(a), n) a, n
    a UNION b                   SELECT DISTINCT ON … FROM (a UNION ALL b)

Equal documents may be written with other zeros; which of them a group shows is left open.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ...catalog.column_types import ColumnType
from ...catalog.errors import SQLError
from ...catalog.json_text import normal_json
from ..parser import position_of
from ..postgres.types import Types
from .calls import JSONB, call, is_literal
from .order import same as same_text

_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
COMPARED = (*_EQUALITIES, *_ORDERS, exp.In, exp.Between)
NODES = (
    *COMPARED, exp.Case, exp.Nullif, exp.Greatest, exp.Least, exp.Ordered, exp.Window, exp.Count,
    exp.ArrayAgg, exp.Select, exp.SetOperation, exp.Join,
)  # fmt: skip

Wrap = Callable[[exp.Expr], exp.Expr]


def same(node: exp.Expr) -> exp.Expr:
    """What equal documents share."""
    if is_literal(node):
        return exp.Literal.string(same_text(normal_json(node.unnest().this)))
    if isinstance(node, exp.Column):
        return call("jsonb_same", node.copy())
    return call("jsonb_same_text", node.copy())


def sort_key(node: exp.Expr) -> exp.Expr:
    inner = exp.cast(node.copy(), "jsonb", dialect="postgres") if is_literal(node) else node.copy()
    return call("jsonb_sort_key", inner)


def grouped(node: exp.Expr, types: Types) -> exp.Expr | None:
    """What stands for a node that compares, orders or groups; None for itself."""
    match node:
        case exp.In():
            _compare([node.this, *node.expressions, *_queried(node)], types, same)
        case exp.Between():
            _compare([node.this, node.args["low"], node.args["high"]], types, sort_key)
        case exp.Case():
            if node.this is not None:
                conditions = [branch.this for branch in node.args["ifs"]]
                _compare([node.this, *conditions], types, same)
        case exp.Nullif():
            return _nullif(node, types)
        case exp.Greatest() | exp.Least():
            parts = [node.this, *node.expressions]
            if _are_documents(parts, types):
                return call(f"jsonb_{node.key}", *map(_as_document, parts))
        case exp.Ordered():
            _order(node, types)
        case exp.Window():
            for part in list(node.args.get("partition_by") or ()):
                _wrap_if_document(part, types, same)
        case exp.Count():
            if isinstance(node.this, exp.Distinct):
                for part in list(node.this.expressions):
                    _wrap_if_document(part, types, same)
        case exp.ArrayAgg():
            return _distinct_items(node, types)
        case exp.Join():
            _check_using(node, types)
        case exp.SetOperation():
            return _set_operation(node, types)
        case exp.Select():
            _group(node, types)
            _distinct(node, types)
        case _:
            wrap = same if isinstance(node, _EQUALITIES) else sort_key
            _compare([node.this, node.args["expression"]], types, wrap)
    return None


def _as_document(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), "jsonb", dialect="postgres") if is_literal(node) else node.copy()


def _queried(node: exp.In) -> list[exp.Expr]:
    """The item of `x IN (SELECT item …)`."""
    query = node.args.get("query")
    select = query.unnest() if query is not None else None
    if isinstance(select, exp.Subquery):
        select = select.this
    return [select.expressions[0].unalias()] if isinstance(select, exp.Select) else []


def _compare(sides: list[exp.Expr], types: Types, wrap: Wrap) -> None:
    """Puts in the place of documents what says how they compare; rows are taken apart."""
    rows = [_entries(side) for side in sides]
    if all(row is not None for row in rows):
        for entries in zip(*(row for row in rows if row is not None), strict=False):
            _compare(list(entries), types, wrap)
        return
    if any(isinstance(side, exp.Any | exp.All) for side in sides):
        for side in sides:
            inner = side.this if isinstance(side, exp.Any | exp.All) else side
            _refuse_array(types.of(inner), inner)
            if types.of(inner) == JSONB:
                raise _unsupported("= ANY of documents", "doc IN (…) compares them.", inner)
        return
    for side in sides:
        _refuse_array(types.of(side), side)
    if _are_documents(sides, types):
        for side in sides:
            side.replace(wrap(side))


def _entries(node: exp.Expr) -> list[exp.Expr] | None:
    inner = node.unnest()
    row = isinstance(inner, exp.Anonymous) and inner.name.upper() == "ROW"
    return list(inner.expressions) if row or isinstance(inner, exp.Tuple) else None


def _are_documents(nodes: list[exp.Expr], types: Types) -> bool:
    return any(types.of(node) == JSONB for node in nodes)


def _wrap_if_document(node: exp.Expr, types: Types, wrap: Wrap) -> None:
    _refuse_array(types.of(node), node)
    if types.of(node) == JSONB:
        node.replace(wrap(node))


def _refuse_array(type: ColumnType | None, node: exp.Expr) -> None:
    if type is not None and type.element == JSONB:
        raise _unsupported(
            "comparing arrays of documents", "to_jsonb() makes one document of an array.", node
        )


def _unsupported(what: str, hint: str, node: exp.Expr) -> SQLError:
    return SQLError("0A000", f"{what} is not supported", position=position_of(node), hint=hint)


def _nullif(node: exp.Nullif, types: Types) -> exp.Expr | None:
    sides = [node.this, node.expression]
    if not _are_documents(sides, types):
        return None
    equal = exp.EQ(this=same(node.this), expression=same(node.expression))
    return exp.Case(ifs=[exp.If(this=equal, true=exp.Null())], default=_as_document(node.this))


def _order(node: exp.Ordered, types: Types) -> None:
    """An item of ORDER BY, which may be a name or a number of what is selected."""
    what: exp.Expr = node.this
    select = node.parent.parent if node.parent is not None else None
    if isinstance(node.parent, exp.Order) and isinstance(select, exp.Select):
        what = _selected(select, what) or what
    _refuse_array(types.of(what), node.this)
    if types.of(what) == JSONB:
        if isinstance(select, exp.SetOperation):
            return
        node.this.replace(sort_key(what))


def _selected(select: exp.Select, node: exp.Expr) -> exp.Expr | None:
    """The item that a name or a number in ORDER BY or GROUP BY stands for."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        place = int(node.this)
        known = 1 <= place <= len(select.expressions)
        return select.expressions[place - 1].unalias() if known else None
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        for item in select.expressions:
            if isinstance(item, exp.Alias) and item.alias == node.name:
                return item.unalias()
    return None


def _distinct_items(node: exp.ArrayAgg, types: Types) -> exp.Expr | None:
    """`array_agg(DISTINCT doc)`: in their order, each once."""
    distinct = node.this
    if not isinstance(distinct, exp.Distinct) or not _are_documents(distinct.expressions, types):
        return None
    if isinstance(node.parent, exp.Filter | exp.Window):
        raise _unsupported(
            "DISTINCT of documents with FILTER or OVER", "Filter in a subquery.", node
        )
    return call("jsonb_distinct", exp.ArrayAgg(this=distinct.expressions[0]))


def _check_using(node: exp.Join, types: Types) -> None:
    for name in node.args.get("using") or ():
        column = name if isinstance(name, exp.Column) else None
        if column is not None and types.of(column) == JSONB:
            raise _unsupported("USING of documents", "Join ON a.doc = b.doc.", node)


def _group(select: exp.Select, types: Types) -> None:
    """GROUP BY documents: what is selected of a group is one of its documents."""
    group = select.args.get("group")
    if group is None:
        return
    for key in list(group.expressions):
        plain = types.of(key) is not None and isinstance(key, exp.Column)
        what = key if plain else _selected(select, key) or key
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
            _wrap_if_document(part, types, same)
        return
    items = [item.unalias() for item in select.expressions]
    for item in items:
        _refuse_array(types.of(item), item)
    if not _are_documents(items, types):
        return
    keys = [same(item) if types.of(item) == JSONB else item.copy() for item in items]
    distinct.set("on", exp.Tuple(expressions=keys))


def _set_operation(node: exp.SetOperation, types: Types) -> exp.Expr | None:
    """UNION of documents that are equal: each once."""
    names, found = types.columns_of(node)
    for type in found:
        _refuse_array(type, node)
    if JSONB not in found or not node.args.get("distinct"):
        return None
    if not isinstance(node, exp.Union) or isinstance(node.parent, exp.CTE) or "*" in names:
        raise _unsupported(
            f"{node.key.upper()} of documents",
            "Say UNION ALL and DISTINCT, or EXISTS, in a query around it.",
            node,
        )
    tail = {arg: node.args.pop(arg) for arg in _TAIL if node.args.get(arg)}
    node.set("distinct", False)
    columns = [exp.column(name, quoted=True) for name in names]
    keys = [
        same(column) if type == JSONB else column.copy()
        for column, type in zip(columns, found, strict=True)
    ]
    inner = exp.Subquery(this=node.copy(), alias=exp.TableAlias(this=exp.to_identifier("united")))
    made = exp.select(*columns).from_(inner)
    made.set("distinct", exp.Distinct(on=exp.Tuple(expressions=keys)))
    for arg, part in tail.items():
        made.set(arg, part)
    return made


_TAIL = ("with_", "order", "limit", "offset")
