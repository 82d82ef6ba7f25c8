"""Documents in a query: the functions that operators on JSONB become in its tree, and documents
compared, ordered and grouped. The functions themselves are `sql.builtins.documents`.

    doc -> 'a' ->> 'b'      jsonb_member_text(doc, '$."a"."b"', ARRAY['a', 'b'])
    doc -> 'a' ->> 0        jsonb_element_text(jsonb_member(doc, '$."a"', ARRAY['a']), 0)
    doc @> '{"a": 1}'       jsonb_contains(doc, '{"a": 1}'::JSONB)
    doc - 'a'               jsonb_delete_key(doc, 'a')
    upper(doc)              an error (42883): DuckDB would take a document for its text

What an operator does depends on its operands, so their types are looked for. Where they are not
plain to see the functions find out, for they see what they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from ...catalog.values.column_types import JSONB, STRING, ColumnType, Datum, array_of, coerce
from ...catalog.values.errors import SQLError
from ...catalog.values.json_text import normal_json
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.resolution import no_operator
from ..analyze.types.rows import check_order_of_distinct, entries
from ..analyze.types.types import Types, untyped
from ..builtins.documents.calls import FUNCTIONS, call, is_call, is_literal, literal_document
from ..builtins.documents.order import same as same_text
from ..builtins.macros import PREFIX
from ..builtins.signatures import type_name
from ..syntax.trees import error_at, find_all, is_natural, stepping, unsupported, walk
from .aggregates import around
from .meaning import rewritten

_TEXTS = array_of(STRING)


def mean_documents(query: exp.Query, types: Types) -> exp.Query:
    """Returns the query with operators and functions of documents lowered to DuckDB. Raises
    SQLError for operations that PostgreSQL does not have for documents."""
    for node in list(walk(query)):
        types.of(node)  # before anything is replaced
    for select in list(find_all(query, exp.Select)):
        check_order_of_distinct(select)
        _group(select, types)

    def rule(node: exp.Expr) -> exp.Expr | None:
        of_class = _RULES.get(type(node))
        return None if of_class is None else of_class(node, types)

    made = rewritten(query, types, rule)
    assert isinstance(made, exp.Query), made
    return made


def _is_document(node: exp.Expr, types: Types) -> bool:
    return types.of(node) == JSONB


def _taken(letters: str, given: list[exp.Expr]) -> list[exp.Expr]:
    """The operands as a function takes them: documents (d), sets of texts (s), or anything."""
    made = []
    for letter, operand in zip(letters, given, strict=False):
        if letter == "d" and is_literal(operand):
            operand = literal_document(operand)
        made.append(text_path(operand) if letter == "s" else operand)
    return made


def _element(node: exp.Expr, types: Types) -> exp.Expr:
    """`doc -> 'a' -> 0`, as one function where all steps are constants."""
    if isinstance(node.expression, exp.JSONPath) and not node.args.get("only_json_types"):
        name = "json_extract" if isinstance(node, exp.JSONExtract) else "json_extract_string"
        raise _no_function(node, name, hint="-> and #> give members of documents.")
    sign = "->" if isinstance(node, exp.JSONExtract) else "->>"
    if is_literal(node.this):
        what = f"operator is not unique: unknown {sign} unknown"
        raise error_at(node, "42725", what, "Cast the text: '…'::JSONB.")
    type = types.of(node.this)
    if type is not None and type != JSONB:
        raise no_operator(sign, type, types.given(node.expression), node)
    texts = "" if sign == "->" else "_text"
    step = _constant_step(node.expression)
    if step is None:
        return call(f"jsonb_element{texts}", node.this, node.expression)
    return _at_step(node.this, step, texts)


_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.JSONBExtract: ("jsonb_at_path", "ds"),
    exp.JSONBExtractScalar: ("jsonb_text_at_path", "ds"),
    exp.JSONBDeleteAtPath: ("jsonb_delete_path", "ds"),
    exp.JSONBContainsTopKey: ("jsonb_exists", "dt"),
    exp.JSONBContainsAnyTopKeys: ("jsonb_exists_any", "ds"),
    exp.JSONBContainsAllTopKeys: ("jsonb_exists_all", "ds"),
    exp.DPipe: ("jsonb_concat", "dd"),
    exp.Sub: ("jsonb_delete", "dt"),
    exp.ArrayContainsAll: ("jsonb_contains", "dd"),
    exp.ArrayContainedBy: ("jsonb_contained", "dd"),
}
"""The function that each operator is, and what it takes."""


def _operated(node: exp.Expr, types: Types) -> exp.Expr | None:
    sides = [node.this, node.expression]
    match node:  # operators that other types have too
        case exp.DPipe() if not _is_document(node, types):
            return None
        case exp.Sub() if not _is_document(node.this, types):
            return None
        case exp.ArrayContainsAll() | exp.ArrayContainedBy():
            if not any(_is_document(side, types) for side in sides):
                return None
    name, letters = _OPERATORS[type(node)]
    return call(name, *_taken(letters, sides))


def _cast(node: exp.Cast, types: Types) -> exp.Expr | None:
    source, target = types.of(node.this), types.of(node)
    if target is None or target == source or untyped(node.this):
        return None
    if target == JSONB:
        if source is not None and source.kind is not TypeKind.STRING:
            raise _no_cast(node, source, target)
        return call("jsonb_in", node.this)
    if source != JSONB or target.kind is TypeKind.STRING:
        return None
    if target.kind not in _OF_DOCUMENTS:
        raise _no_cast(node, source, target)
    bare = target.kind is TypeKind.DECIMAL and not node.to.expressions
    name = "jsonb_bare_number" if bare else _OF_DOCUMENTS[target.kind]
    node.this.replace(call(name, node.this.copy()))
    return None


def _function(node: exp.Anonymous, types: Types) -> exp.Expr | None:
    if is_call(node):
        return None
    name, given = node.name.lower().removeprefix(PREFIX), list(node.expressions)
    if name in _BUILDERS or name in _AGGREGATES:
        return _made(node, name, given, types)
    same = name.replace("json_", "jsonb_", 1) if name.startswith("json_") else name
    shape = FUNCTIONS.get(same)
    if shape is None:
        if name.startswith("json") and name not in _WITHIN:
            raise _no_function(node, name)
        return None
    made, letters, least = shape
    if name.endswith("_path") or name.endswith("_path_text"):
        given = [given[0], exp.Array(expressions=given[1:])] if len(given) > 1 else given
    if not least <= len(given) <= len(letters):
        raise _no_function(node, f"{name} with {len(given)} arguments")
    for letter, argument in zip(letters, given, strict=False):
        type = types.of(argument)
        if letter == "d" and type is not None and type != JSONB:
            raise _no_function(node, f"{name}({type_name(type)})")
    return call(made, *_taken(letters, given))


def _made(node: exp.Anonymous, name: str, given: list[exp.Expr], types: Types) -> exp.Expr:
    """Functions that make documents of values of any type."""
    made = _BUILDERS.get(name)
    if made in (None, "jsonb_of") and len(given) != 1:
        raise _no_function(node, f"{name} with {len(given)} arguments")
    if made is None:
        return gathered(node, given[0], types)
    if made == "jsonb_of" and is_literal(given[0]):
        raise error_at(
            node,
            "42804",
            "could not determine polymorphic type because input has type unknown",
            "Cast the text: 'x'::TEXT.",
        )
    if made == "jsonb_built_object" and len(given) % 2:
        raise error_at(
            node,
            "22023",
            "argument list must have even number of elements",
            f"The arguments of {name}() must consist of alternating keys and values.",
        )
    if not given:
        empty = "{}" if made == "jsonb_built_object" else "[]"
        return literal_document(exp.Literal.string(empty))
    return call(made, *given)


def _refused(node: exp.JSONObject | exp.JSONArray, types: Types) -> None:
    raise _no_function(node, node.sql_name().lower())


def _no_cast(node: exp.Cast, source: ColumnType, target: ColumnType) -> SQLError:
    return error_at(node, "42846", f"cannot cast type {type_name(source)} to {type_name(target)}")


def _no_function(node: exp.Expr, what: str, hint: str | None = None) -> SQLError:
    return error_at(
        node,
        "42883",
        f"function {what} does not exist",
        hint or "You might need to add explicit type casts.",
    )


Step = str | int


def _constant_step(node: exp.Expr) -> Step | None:
    inner = node.unnest()
    match inner:
        case exp.JSONPath():
            step = inner.expressions[-1].this
            return step if isinstance(step, str | int) else None
        case exp.Literal():
            return str(inner.this) if inner.is_string else int(inner.this)
        case exp.Neg() if isinstance(inner.this, exp.Literal) and inner.this.this.isdecimal():
            return -int(inner.this.this)
    return None


def _at_step(base: exp.Expr, step: Step, texts: str) -> exp.Expr:
    """Returns what stands at a constant step. Members of a column's members, whose names need no
    escapes, are one path."""
    inner = base.unnest()
    steps = [*inner.meta.get(_STEPS, ()), step]
    column = inner.expressions[0] if len(steps) > 1 else base
    if isinstance(column, exp.Column) and all(map(_plain_step, steps)):
        path = exp.Literal.string("".join(["$", *(f'."{name}"' for name in steps)]))
        made = call(f"jsonb_member{texts}", column, path, _texts([str(name) for name in steps]))
        if not texts:
            made.meta[_STEPS] = steps
        return made
    literal = exp.Literal.string(step) if isinstance(step, str) else exp.Literal.number(step)
    return call(f"jsonb_element{texts}", base, literal)


_STEPS = "steps"
"""Marks a call of jsonb_member() by the names that it follows."""


def _plain_step(step: Step) -> bool:
    """Whether a path of DuckDB's can name it: a member whose name needs no escapes."""
    return (
        isinstance(step, str)
        and step.isascii()
        and step.replace("_", "").replace("-", "").replace(" ", "").isalnum()
    )


def _subscript(node: exp.Bracket, types: Types) -> exp.Expr | None:
    """`doc['a'][0]`, as SQLAlchemy writes each step into a document: a place of a path."""
    if not _is_document(node.this, types):
        return None
    item = node.expressions[0]
    if isinstance(item, exp.Slice):
        raise error_at(node, "42804", "jsonb subscript does not support slices")
    if not item.is_string:
        item = exp.cast(item, "text")
    return call("jsonb_at_path", node.this, exp.Array(expressions=[item.copy()]))


def text_path(node: exp.Expr) -> exp.Expr:
    """Returns a path as an array of texts; a literal is read as `'{a,b}'`."""
    if not is_literal(node):
        return node
    texts = coerce(_TEXTS, node.this)
    assert isinstance(texts, list), texts
    return _texts(texts)


def _texts(texts: Sequence[Datum]) -> exp.Expr:
    items = [exp.Null() if text is None else exp.Literal.string(str(text)) for text in texts]
    return exp.cast(exp.Array(expressions=items), "text[]", dialect="postgres")


def gathered(node: exp.Expr, argument: exp.Expr, types: Types) -> exp.Expr:
    """`jsonb_agg(x ORDER BY y)`: a function of a list, to which FILTER and OVER belong, and so NULL
    of no rows."""
    listed = exp.ArrayAgg(this=argument)
    _refuse_compared(listed, types)
    outer = around(node)
    if outer is node:
        return call("jsonb_of", listed)
    node.replace(listed)
    made = call("jsonb_of", exp.Null())
    outer.replace(made)
    made.set("expressions", [outer])
    return listed


_OF_DOCUMENTS = {
    TypeKind.INT8: "jsonb_integer",
    TypeKind.DECIMAL: "jsonb_number",
    TypeKind.FLOAT4: "jsonb_number",
    TypeKind.FLOAT8: "jsonb_number",
    TypeKind.BOOL: "jsonb_truth",
}
_BUILDERS = {
    **dict.fromkeys(("to_jsonb", "to_json", "array_to_json", "row_to_json"), "jsonb_of"),
    **dict.fromkeys(("jsonb_build_object", "json_build_object"), "jsonb_built_object"),
    **dict.fromkeys(("jsonb_build_array", "json_build_array"), "jsonb_built_array"),
}
_AGGREGATES = ("jsonb_agg", "json_agg")
_WITHIN = ("jsonb_pair_key", "jsonb_pair_value", "jsonb_pair_text")
"""Functions that the parser makes and whose operands are no documents."""


# Documents compared, ordered and grouped as PostgreSQL's btree does it.
#
#     a = b                       jsonb_same(a) = jsonb_same(b)
#     a < b, ORDER BY a           jsonb_sort_key(a) < jsonb_sort_key(b)
#     SELECT a … GROUP BY a       SELECT any_value(a) … GROUP BY jsonb_same(a)
#     SELECT DISTINCT a, n        SELECT DISTINCT ON (jsonb_same(a), n) a, n
#
# Equal documents may be written with other zeros; which of them a group shows is left open. What
# compares documents otherwise (BETWEEN, CASE doc WHEN, greatest(), PARTITION BY, count(DISTINCT
# doc), UNION) is refused (0A000).

_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPARING = (
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


def _compared(node: exp.Expr, types: Types) -> None:
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
            _refuse_compared(node, types)


def _refuse_compared(node: exp.Expr, types: Types) -> None:
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
    if isinstance(query, exp.SetOperation):
        hint = "Say SELECT … FROM (… UNION ALL …) AS u."
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


def _group(select: exp.Select, types: Types) -> None:
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


_RULES: dict[type[exp.Expr], Callable[[Any, Types], exp.Expr | None]] = {
    **dict.fromkeys(_COMPARING, _compared),
    **dict.fromkeys((exp.JSONExtract, exp.JSONExtractScalar), _element),
    **dict.fromkeys(_OPERATORS, _operated),
    exp.Cast: _cast,
    exp.Anonymous: _function,
    exp.Bracket: _subscript,
    exp.ParseJSON: lambda node, types: exp.cast(node.this, "jsonb", dialect="postgres"),
    exp.JSONArrayAgg: lambda node, types: gathered(node, node.this, types),
    **dict.fromkeys((exp.JSONObject, exp.JSONArray), _refused),
}
"""The replacement of each class of nodes, whose parts have been replaced already."""
