"""Documents compared, ordered and grouped as PostgreSQL's btree does it.

    a = b                       jsonb_same(a) = jsonb_same(b)
    a < b, ORDER BY a           jsonb_sort_key(a) < jsonb_sort_key(b)
    SELECT a … GROUP BY a       SELECT any_value(a) … GROUP BY jsonb_same(a)
    SELECT DISTINCT a, n        SELECT DISTINCT ON (jsonb_same(a), n) a, n

Equal documents may be written with other zeros; which of them a group shows is left open. There is
no greatest() of documents, and no UNION that would compare them (0A000).
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

_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
COMPARED = (*_EQUALITIES, *_ORDERS, exp.In, exp.Between)
NODES = (
    *COMPARED, exp.Case, exp.Nullif, exp.Greatest, exp.Least, exp.Ordered, exp.Window, exp.Count,
    exp.ArrayAgg, exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Join,
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
    return call("jsonb_sort_key", _as_document(node))


def grouped(node: exp.Expr, types: Types) -> exp.Expr | None:
    """Returns the replacement of a node that compares, orders or groups; None where it stays."""
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
            if _are_documents([node.this, *node.expressions], types):
                raise unsupported(f"{node.key}() of documents", node, "Say CASE WHEN a < b ….")
        case exp.Ordered():
            _order(node, types)
        case exp.Window():
            for part in list(node.args.get("partition_by") or ()):
                _wrap_if_document(part, types)
        case exp.Count():
            if isinstance(node.this, exp.Distinct):
                for part in list(node.this.expressions):
                    for entry in entries(part) or [part]:
                        _wrap_if_document(entry, types)
        case exp.ArrayAgg():
            check_distinct(node, types)
        case exp.Join():
            _check_using(node, types)
        case exp.SetOperation():
            _check_set_operation(node, types)
        case exp.Select():
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
    rows = [entries(side) for side in sides]
    if all(row is not None for row in rows):
        for each in zip(*(row for row in rows if row is not None), strict=False):
            _compare(list(each), types, wrap)
        return
    sets = [side for side in sides if isinstance(side, exp.Any | exp.All)]
    if sets and _are_documents(sides, types):
        raise unsupported(
            "comparing a document with ANY or ALL of others", sets[0], "Say doc IN (…)."
        )
    for side in sides:
        _refuse_array(types.of(side), side)
    if _are_documents(sides, types):
        for side in sides:
            side.replace(wrap(side))


def _are_documents(nodes: list[exp.Expr], types: Types) -> bool:
    return any(types.of(node) == JSONB for node in nodes)


def _wrap_if_document(node: exp.Expr, types: Types) -> None:
    _refuse_array(types.of(node), node)
    if types.of(node) == JSONB:
        node.replace(same(node))


def _refuse_array(type: ColumnType | None, node: exp.Expr) -> None:
    if type is not None and type.element == JSONB:
        raise unsupported(
            "comparing arrays of documents", node, "to_jsonb() makes one document of an array."
        )


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
        what = _selected(select, what, types) or what
    _refuse_array(types.of(what), node.this)
    if types.of(what) != JSONB or isinstance(select, exp.SetOperation):
        return
    if isinstance(select, exp.WithinGroup):
        raise unsupported("WITHIN GROUP of documents", node, "Say ORDER BY and LIMIT.")
    node.this.replace(sort_key(what))


def _selected(select: exp.Select, node: exp.Expr, types: Types) -> exp.Expr | None:
    """The item that a name or a number in ORDER BY or GROUP BY stands for."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        place = int(node.this)
        _, parts = types.parts_of(select)
        return parts[place - 1][0] if 1 <= place <= len(parts) else None
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        for item in select.expressions:
            if item.alias_or_name == node.name:
                found: exp.Expr = item.unalias()
                return found
    return None


def check_distinct(node: exp.ArrayAgg, types: Types) -> None:
    """Raises SQLError 0A000 for `array_agg(DISTINCT doc)`."""
    distinct = node.this.this if isinstance(node.this, exp.Order) else node.this
    if isinstance(distinct, exp.Distinct) and types.of(distinct.expressions[0]) == JSONB:
        raise unsupported(
            "an aggregate of DISTINCT documents", node, "Say SELECT DISTINCT in a subquery."
        )


def _check_using(node: exp.Join, types: Types) -> None:
    """Raises SQLError where columns that are made equal are documents."""
    names = [part.name.lower() for part in node.args.get("using") or ()]
    natural = str(node.args.get("method") or "").upper() == "NATURAL"
    if not names and not natural:
        return
    found = types.columns_in(node.this) or []
    if any(type == JSONB and (natural or name in names) for name, type in found):
        raise unsupported("NATURAL and USING of documents", node, "Join ON a.doc = b.doc.")


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
            _wrap_if_document(part, types)
        return
    _, parts = types.parts_of(select)
    items = [part for (part,) in parts]
    for item in items:
        _refuse_array(types.of(item), item)
    if not _are_documents(items, types):
        return
    keys = [same(item) if types.of(item) == JSONB else item.copy() for item in items]
    distinct.set("on", exp.Tuple(expressions=keys))


def _check_set_operation(node: exp.SetOperation, types: Types) -> None:
    """Raises SQLError for what compares the rows of two queries, or orders them, by documents."""
    names, found = types.columns_of(node)
    for type in found:
        _refuse_array(type, node)
    if JSONB not in found:
        return
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        raise unsupported(
            f"{node.key.upper()} of documents", node, "UNION ALL is, and of doc::TEXT all are."
        )
    order = node.args.get("order")
    for ordered in order.expressions if order is not None else ():
        key = ordered.this
        named = key.name in names and found[list(names).index(key.name)] == JSONB
        place = int(key.name) if isinstance(key, exp.Literal) and key.name.isdecimal() else 0
        if named or (0 < place <= len(found) and found[place - 1] == JSONB):
            raise unsupported(
                "an order of united documents", key, "Say SELECT … FROM (… UNION ALL …) AS u."
            )
