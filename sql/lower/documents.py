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
from ...catalog.values.type_kinds import FLOATS, TypeKind
from ..analyze.types.resolution import no_operator
from ..analyze.types.rows import check_order_of_distinct, entries
from ..analyze.types.types import Types, untyped
from ..builtins.documents.calls import (
    BUILDERS,
    FUNCTIONS,
    call,
    is_call,
    is_literal,
    literal_document,
)
from ..builtins.known_functions import operand_of
from ..builtins.macros import PREFIX, cast_to
from ..builtins.signatures import type_name
from ..syntax.trees import error_at, find_all, stepping, unsupported, walk
from .aggregates import around
from .arrays import ELEMENT
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
    """A text read as a document. No other type is cast to one (`conversions.CASTS`)."""
    if types.of(node) != JSONB or types.of(node.this) == JSONB or untyped(node.this):
        return None
    return call("jsonb_in", node.this)


def _function(node: exp.Anonymous, types: Types) -> exp.Expr | None:
    if is_call(node):
        return None
    name, given = node.name.lower().removeprefix(PREFIX), list(node.expressions)
    if name in BUILDERS:
        return _made(node, name, given, types)
    same = name.replace("json_", "jsonb_", 1) if name.startswith("json_") else name
    shape = FUNCTIONS.get(same)
    if shape is None:
        if name.startswith("json"):
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
    if name.endswith("_build_object"):
        return _object(node, name, given, types)
    if name.endswith("_build_array"):
        values = call("list_value", *[_value(each, types) for each in given])
        return call("jsonb_in", call("document_array", values))
    if len(given) != 1:
        raise _no_function(node, f"{name} with {len(given)} arguments")
    if name.endswith("_agg"):
        return gathered(node, given[0], types)
    if is_literal(given[0]):
        raise error_at(
            node,
            "42804",
            "could not determine polymorphic type because input has type unknown",
            "Cast the text: 'x'::TEXT.",
        )
    return _document(given[0], types.of(given[0]), types)


def _object(node: exp.Expr, name: str, given: list[exp.Expr], types: Types) -> exp.Expr:
    """jsonb_build_object(): names and values by turns. Raises SQLError 22023."""
    if len(given) % 2:
        raise error_at(
            node,
            "22023",
            "argument list must have even number of elements",
            f"The arguments of {name}() must consist of alternating keys and values.",
        )
    members = []
    for key, value in zip(given[::2], given[1::2], strict=True):
        type = types.of(key)
        if type is not None and (type == JSONB or type.element is not None):
            what = "key value must be scalar, not array, composite, or json"
            raise error_at(node, "22023", what)
        named = call("document_name", _written(key, type, types))
        members.append(call("concat", named, exp.Literal.string(": "), _value(value, types)))
    return call("jsonb_in", call("document_object", call("list_value", *members)))


# Values as documents, which to_jsonb() makes: texts that are in the normal form, but for escaped
# letters, the digits of floats and the order of members, which jsonb_in() mends.
#
#     4.50                     4.50                      every digit
#     1e20::FLOAT8             1e+20                     NaN and infinities are texts
#     TIMESTAMPTZ              "2024-01-02T03:04:05.5+00:00", in the session's zone
#     ARRAY['a', NULL]         ["a", null]
#     anything else            the text that a cast gives, in quotes


def _document(tree: exp.Expr, type: ColumnType | None, types: Types) -> exp.Expr:
    """Returns a value as a document; NULL stays NULL."""
    written = _written(tree, type, types)
    normal = type is not None and (type.element or type).kind in _NORMAL
    return cast_to(written, JSONB) if normal else call("jsonb_in", written)


def _value(tree: exp.Expr, types: Types) -> exp.Expr:
    """Returns the text of a value within a document."""
    return call("coalesce", _written(tree, types.of(tree), types), exp.Literal.string("null"))


def _written(tree: exp.Expr, type: ColumnType | None, types: Types) -> exp.Expr:
    """Returns the text of a value as a document. Its cast is lowered as any other is."""
    if type is None:
        return call("document_unknown", tree)
    if type.element is not None:
        element = ELEMENT.copy()
        types.say(element, type.element)
        item = exp.Lambda(this=_value(element, types), expressions=[exp.to_identifier("e")])
        return call("document_array", call("list_transform", tree, item))
    if type.kind is TypeKind.TIMESTAMPTZ:
        return call("document_instant", tree)
    cast = cast_to(tree, STRING)
    return cast if type.kind in _NORMAL else call(_FORMS.get(type.kind, "document_text"), cast)


_NORMAL = (TypeKind.INT8, TypeKind.DECIMAL, TypeKind.BOOL, TypeKind.JSONB)
"""Kinds whose texts are documents in the normal form."""
_FORMS = {**dict.fromkeys(FLOATS, "document_digits"), TypeKind.TIMESTAMP: "document_moment"}


def _refused(node: exp.JSONObject | exp.JSONArray, types: Types) -> None:
    raise _no_function(node, node.sql_name().lower())


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
    """`jsonb_agg(x ORDER BY y)`: a document of a list, to which FILTER and OVER belong, and so NULL
    of no rows."""
    type = types.of(operand_of(argument))
    several = None if type is None else array_of(type)
    listed = exp.ArrayAgg(this=argument)
    _refuse_compared(listed, types)
    outer = around(node)
    if outer is node:
        return _document(listed, several, types)
    node.replace(listed)
    place = exp.Null()
    outer.replace(place)
    place.replace(_document(outer, several, types))
    return listed


# Documents compared, ordered and grouped as PostgreSQL's btree does it.
#
#     a = b                       document_same(a) = document_same(b)
#     a < b, ORDER BY a           jsonb_sort_key(a) < jsonb_sort_key(b)
#     SELECT a … GROUP BY a       SELECT any_value(a) … GROUP BY document_same(a)
#     SELECT DISTINCT a, n        SELECT DISTINCT ON (document_same(a), n) a, n
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
    document = literal_document(node) if is_literal(node) else node.copy()
    return call("document_same" if isinstance(node, exp.Column) else "document_trimmed", document)


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
            found = types.columns_in(node.this) or [] if names else []
            return [type for name, type in found if name in names]
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
