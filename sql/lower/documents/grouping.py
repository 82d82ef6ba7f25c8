"""Documents compared, ordered and grouped as PostgreSQL's btree does it.

    a = b                       jsonb_same(a) = jsonb_same(b)
    a < b, ORDER BY a           jsonb_sort_key(a) < jsonb_sort_key(b)
    SELECT a … GROUP BY a       SELECT any_value(a) … GROUP BY jsonb_same(a)
    SELECT DISTINCT a, n        SELECT DISTINCT ON (jsonb_same(a), n) a, n
    a UNION b                   SELECT DISTINCT ON … FROM (a UNION ALL b)

Equal documents may be written with other zeros; which of them a group shows is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.json_text import normal_json
from ...analyze.types.types import Types
from ...builtins.documents.calls import JSONB, call, is_literal
from ...builtins.documents.order import same as same_text
from ...parse import position_of
from ...syntax.balanced import INNER

_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
COMPARED = (*_EQUALITIES, *_ORDERS, exp.In, exp.Between)
NODES = (
    *COMPARED, exp.Case, exp.Nullif, exp.Greatest, exp.Least, exp.Ordered, exp.Window, exp.Count,
    exp.ArrayAgg, exp.Select, exp.SetOperation, exp.Join,
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
    inner = exp.cast(node.copy(), "jsonb", dialect="postgres") if is_literal(node) else node.copy()
    return call("jsonb_sort_key", inner)


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
                    for entry in _entries(part) or [part]:
                        _wrap_if_document(entry, types, same)
        case exp.ArrayAgg():
            return distinct_items(node, types)
        case exp.Join():
            _check_using(node, types)
        case exp.SetOperation():
            return _set_operation(node, types)
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
    rows = [_entries(side) for side in sides]
    if all(row is not None for row in rows):
        for entries in zip(*(row for row in rows if row is not None), strict=False):
            _compare(list(entries), types, wrap)
        return
    sets = [side for side in sides if isinstance(side, exp.Any | exp.All)]
    if sets:
        _compare_with_set(sides, sets[0], types, wrap)
        return
    for side in sides:
        _refuse_array(types.of(side), side)
    if _are_documents(sides, types):
        for side in sides:
            side.replace(wrap(side))


def _compare_with_set(sides: list[exp.Expr], among: exp.Expr, types: Types, wrap: Wrap) -> None:
    """`doc = ANY (documents)`."""
    inner, (other,) = among.this.unnest(), [side for side in sides if side is not among]
    if types.of(among) != JSONB and types.of(other) != JSONB:
        return
    if wrap is not same or isinstance(inner, exp.Query):
        raise _unsupported(
            "comparing a document with ANY or ALL of others, but for = and <> of arrays",
            "doc IN (SELECT …) is = ANY, and EXISTS asks for any other.",
            among,
        )
    among.this.replace(call("jsonb_same_texts", inner.copy()))
    other.replace(same(other))


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
        what = _selected(select, what, types) or what
    _refuse_array(types.of(what), node.this)
    if types.of(what) == JSONB:
        if isinstance(select, exp.SetOperation):
            return
        if isinstance(select, exp.WithinGroup):
            raise _unsupported("WITHIN GROUP of documents", "Say ORDER BY and LIMIT.", node)
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


def distinct_items(node: exp.ArrayAgg, types: Types) -> exp.Expr | None:
    """`array_agg(DISTINCT x)`: in their order, each once."""
    order = node.this if isinstance(node.this, exp.Order) else None
    distinct = node.this if order is None else order.this
    if not isinstance(distinct, exp.Distinct):
        return None
    item = distinct.expressions[0]
    if types.of(item) == JSONB:
        if order is not None or isinstance(node.parent, exp.Filter | exp.Window):
            raise _unsupported(
                "DISTINCT of documents with ORDER BY, FILTER or OVER",
                "Say SELECT DISTINCT in a subquery.",
                node,
            )
        return call("jsonb_distinct", exp.ArrayAgg(this=item))
    if order is None:
        key = exp.Ordered(this=item.copy(), nulls_first=False)
        node.set("this", exp.Order(this=distinct, expressions=[key]))
    return None


def _check_using(node: exp.Join, types: Types) -> None:
    """Raises SQLError where columns that are made equal are documents."""
    names = [part.name.lower() for part in node.args.get("using") or ()]
    natural = str(node.args.get("method") or "").upper() == "NATURAL"
    if not names and not natural:
        return
    found = types.columns_in(node.this)
    if any(type == JSONB and (natural or name in names) for name, type in found):
        raise _unsupported("NATURAL and USING of documents", "Join ON a.doc = b.doc.", node)


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
            _wrap_if_document(part, types, same)
        return
    _, parts = types.parts_of(select)
    items = [part for (part,) in parts]
    for item in items:
        _refuse_array(types.of(item), item)
    if not _are_documents(items, types):
        return
    keys = [same(item) if types.of(item) == JSONB else item.copy() for item in items]
    distinct.set("on", exp.Tuple(expressions=keys))


def _set_operation(node: exp.SetOperation, types: Types) -> exp.Expr | None:
    """UNION, INTERSECT and EXCEPT of documents that are equal: each once, and in their order."""
    if node.meta.get(INNER):
        return None  # a part of what the whole of its chain unites
    names, found = types.columns_of(node)
    for type in found:
        _refuse_array(type, node)
    distinct = bool(node.args.get("distinct"))
    places = _document_keys(node, names, found)
    united = isinstance(node, exp.Union)
    if JSONB not in found or (united and not (distinct or places)):
        return None
    within = node.find_ancestor(exp.With)
    if within is not None and within.args.get("recursive") and isinstance(node.parent, exp.CTE):
        raise _unsupported("UNION of documents in WITH RECURSIVE", "Say UNION ALL.", node)
    if not distinct and not united:
        raise _unsupported(f"{node.key.upper()} ALL of documents", "Leave ALL out.", node)
    for ordered, place in places:
        ordered.set("this", sort_key(exp.column(f"c{place}", table="united")))
    tail = {arg: node.args.pop(arg) for arg in _TAIL if node.args.get(arg)}
    made: exp.Expr = _united(node, names, found, distinct=distinct)
    for arg, part in tail.items():
        made.set(arg, part)
    return made


_TAIL = ("with_", "order", "limit", "offset")


def _document_keys(
    node: exp.SetOperation, names: Sequence[str], found: Sequence[ColumnType | None]
) -> list[tuple[exp.Expr, int]]:
    """The items of its ORDER BY that are documents, and the places of their columns."""
    keys: list[tuple[exp.Expr, int]] = []
    order = node.args.get("order")
    for ordered in order.expressions if order is not None else ():
        key = ordered.this
        place = None
        if isinstance(key, exp.Literal) and key.this.isdecimal():
            place = int(key.this) - 1
        elif isinstance(key, exp.Column) and key.name in names:
            place = list(names).index(key.name)
        if place is not None and place < len(found) and found[place] == JSONB:
            keys.append((ordered, place))
    return keys


def _united(
    node: exp.SetOperation,
    names: Sequence[str],
    found: Sequence[ColumnType | None],
    *,
    distinct: bool,
) -> exp.Select:
    """The rows of a set operation. `united` are those of both sides, or of the first."""
    if isinstance(node, exp.Union):
        node.set("distinct", False)
        made = exp.select().from_(_named_columns(node.copy(), "united", len(found)))
    else:
        first = _named_columns(node.this.copy(), "united", len(found))
        second = _named_columns(node.expression.copy(), "others", len(found))
        there: exp.Expr = exp.Exists(this=exp.select("1").from_(second).where(_same_row(found)))
        found_there = there if isinstance(node, exp.Intersect) else exp.Not(this=there)
        made = exp.select().from_(first).where(found_there)
    columns = [exp.column(f"c{place}", table="united") for place in range(len(found))]
    keys = [same(c) if type == JSONB else c.copy() for c, type in zip(columns, found, strict=True)]
    items = [exp.alias_(c, name, quoted=True) for c, name in zip(columns, names, strict=True)]
    made.set("expressions", items)
    if distinct:
        made.set("distinct", exp.Distinct(on=exp.Tuple(expressions=keys)))
    return made


def _named_columns(query: exp.Expr, alias: str, count: int) -> exp.Subquery:
    """A side of a set operation, whose columns are `c0`, `c1`, and so on."""
    names = [exp.to_identifier(f"c{place}") for place in range(count)]
    inner = query.this if isinstance(query, exp.Subquery) and not query.alias else query
    return exp.Subquery(
        this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias), columns=names)
    )


def _same_row(found: Sequence[ColumnType | None]) -> exp.Expr:
    tests: list[exp.Expr] = []
    for place, type in enumerate(found):
        sides = [exp.column(f"c{place}", table=alias) for alias in ("united", "others")]
        wrapped = [same(side) if type == JSONB else side for side in sides]
        tests.append(exp.NullSafeEQ(this=wrapped[0], expression=wrapped[1]))
    return exp.and_(*tests)
