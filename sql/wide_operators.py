"""PostgreSQL's operators and functions on documents, arrays and times, as DuckDB has them.

    doc -> 'a' ->> 0        jsonb_get_text(json_extract(doc, '$."a"'), '$[0]')
    doc @> '{"a": 1}'       jsonb_contains(doc, '{"a": 1}')
    tags || 'new'           list_append(tags, 'new')
    at - '09:00'::time      to_microseconds(date_diff('microsecond', …, at))

What the same sign does depends on its operands, so their types are looked for; where they are not
plain to see the sign stays as it is, and DuckDB says what it makes of it. The functions are those
that `executor.jsonb` defines.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ..catalog.column_types import ColumnType, array_of
from ..catalog.errors import SQLError
from ..catalog.type_kinds import TypeKind
from .expression_types import INT8, INTERVAL, JSONB, STRING
from .parser import position_of
from .postgres.arrays import element_texts
from .postgres.types import Types
from .scalars import NotNative, Scalar, adapt, compile_scalar

TEXTS = array_of(STRING)
_TIME = ColumnType(TypeKind.TIME)

Typed = Callable[[Scalar, ColumnType], exp.Expr]
"""A scalar as a parameter of DuckDB's statement."""


def rewrite(query: exp.Expr, types: Types, typed: Typed) -> None:
    """Replaces them in the query, inner ones first."""
    nodes = list(query.walk())
    for node in nodes:
        types.of(node)  # before anything is replaced
    rewriter = _Rewriter(types, typed)
    for node in reversed(nodes):
        made = rewriter.made_of(node)
        if made is not None:
            node.replace(made)
            types.say(made, types.of(node))


class _Rewriter:
    """What each node becomes. Operands move into it: their types are known by what they are."""

    def __init__(self, types: Types, typed: Typed) -> None:
        self._types = types
        self._typed = typed

    def made_of(self, node: exp.Expr) -> exp.Expr | None:
        """What stands for the node; None where it stays."""
        match node:
            case exp.Interval():
                return self._constant(node, INTERVAL)
            case exp.Cast():
                return self._cast(node)
            case exp.JSONExtractScalar() | exp.JSONExtract():
                return self._member(node)
            case exp.JSONBExtract() | exp.JSONBExtractScalar():
                texts = isinstance(node, exp.JSONBExtractScalar)
                name = "jsonb_text_at_path" if texts else "jsonb_at_path"
                return _call(name, node.this, self._as(node.expression, TEXTS))
            case exp.JSONBDeleteAtPath():
                path = self._as(node.expression, TEXTS)
                return _call("jsonb_delete_path", node.this, path)
            case exp.JSONBContainsTopKey():
                return _call("jsonb_contains_key", node.this, node.expression)
            case exp.JSONBContainsAnyTopKeys() | exp.JSONBContainsAllTopKeys():
                either = isinstance(node, exp.JSONBContainsAnyTopKeys)
                name = "jsonb_contains_any" if either else "jsonb_contains_all"
                return _call(name, node.this, self._as(node.expression, TEXTS))
            case exp.ArrayContainsAll() | exp.ArrayContainedBy() | exp.ArrayOverlaps():
                return self._containment(node)
            case exp.DPipe():
                return self._concatenation(node)
            case exp.Sub():
                return self._difference(node)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                self._compare(node)
                return self._compared_with_set(node)
            case exp.Greatest() | exp.Least():
                return self._extreme(node)
            case exp.ArrayRemove():
                return _call("array_remove", node.this, node.expression)
            case exp.Any() | exp.All():
                return self._set(node)
            case exp.ArraySize():
                return _array_length(node)
            case exp.Bracket():
                return self._subscript(node)
            case exp.Anonymous():
                return self._function(node)
            case exp.JSONArrayAgg():
                return _aggregated(node, node.this)
            case exp.JSONBObjectAgg() | exp.JSONObjectAgg():
                return _object_aggregate(node)
            case exp.ParseJSON():
                return self._constant(exp.cast(node.this.copy(), "jsonb"), JSONB)
        return None

    def _type(self, node: exp.Expr) -> ColumnType | None:
        return self._types.of(node)

    def _constant(self, node: exp.Expr, type: ColumnType) -> exp.Expr | None:
        try:
            scalar = adapt(compile_scalar(node, {}), type, position=position_of(node))
            return self._typed(scalar, type)
        except NotNative:
            return None

    def _as(self, node: exp.Expr, type: ColumnType) -> exp.Expr:
        """The operand, which a text literal is of the type that the operator wants."""
        literal = isinstance(node, exp.Literal) and node.is_string
        return (self._constant(node, type) or node) if literal else node

    def _cast(self, node: exp.Cast) -> exp.Expr | None:
        target, source = self._type(node), self._type(node.this)
        if target is None:
            return None
        wide = target.element is not None or target.kind in _PARSED
        literal = isinstance(node.this, exp.Literal) and node.this.is_string
        if wide and literal:
            return self._constant(node, target)
        if target == STRING and source == INTERVAL:
            return _call("interval_text", node.this)
        if target == STRING and source == JSONB:
            return _call("jsonb_text", node.this)
        if target == STRING and source is not None and source.element is not None:
            return _call("array_text", element_texts(node.this, source.element))
        if source == JSONB and target.kind in _OF_DOCUMENTS:
            node.this.replace(_call(_OF_DOCUMENTS[target.kind], node.this.copy()))
        if target == JSONB and source == STRING:
            return _call("jsonb_in", node.this)
        return None

    def _member(self, node: exp.Expr) -> exp.Expr | None:
        base = self._type(node.this)
        if base is not None and base not in (JSONB, STRING):
            return None
        path = self._path(node.expression)
        if isinstance(node, exp.JSONExtractScalar):
            return _call("jsonb_get_text", node.this, path)
        return _call("json_extract", node.this, path)

    def _path(self, node: exp.Expr) -> exp.Expr:
        """A member's name or an element's place, as a path of DuckDB."""
        if isinstance(node, exp.JSONPath):
            steps = [step for step in node.expressions if not isinstance(step, exp.JSONPathRoot)]
            return exp.Literal.string("$" + "".join(map(_step, steps)))
        if self._type(node) == INT8:
            return _call("jsonb_element", node)
        return _call("jsonb_member", node)

    def _containment(self, node: exp.Expr) -> exp.Expr | None:
        left, right = node.this, node.expression
        types = (self._type(left), self._type(right))
        type = next((type for type in types if type is not None), None)
        if type is None or (type != JSONB and type.element is None):
            return None
        left, right = self._as(left, type), self._as(right, type)
        if type != JSONB:
            return node.__class__(this=left, expression=right)
        if isinstance(node, exp.ArrayContainedBy):
            left, right = right, left
        return _call("jsonb_contains", left, right)

    def _concatenation(self, node: exp.DPipe) -> exp.Expr | None:
        left, right, type = node.this, node.expression, self._type(node)
        if type is None or type == STRING:
            return None
        if type == JSONB:
            return _call("jsonb_concat", self._as(left, type), self._as(right, type))
        if type.element is None:
            return None
        left_type, right_type = self._type(left), self._type(right)
        if right_type is not None and right_type.element is None:
            return _call("list_append", left, right)
        if left_type is not None and left_type.element is None:
            return _call("list_prepend", left, right)
        return _call("array_join", self._as(left, type), self._as(right, type))

    def _difference(self, node: exp.Sub) -> exp.Expr | None:
        left, right = self._type(node.this), self._type(node.expression)
        if left == JSONB:
            if right == INT8:
                return _call("jsonb_delete_index", node.this, node.expression)
            if right is not None and right.element is not None:
                return _call("jsonb_delete_keys", node.this, node.expression)
            return _call("jsonb_delete_key", node.this, node.expression)
        times = left is not None and left.kind in _MOMENTS
        literal = self._as(node.expression, left) if times and left is not None else None
        if literal is not None and literal is not node.expression:
            node.expression.replace(literal)
            right = left
        if left == _TIME and right == _TIME:
            unit = exp.Literal.string("microsecond")
            return _call("to_microseconds", _call("date_diff", unit, node.expression, node.this))
        return None

    def _compare(self, node: exp.Expr) -> None:
        """A text literal that meets one of these types is a value of it."""
        for side, other in ((node.this, node.expression), (node.expression, node.this)):
            type = self._type(other)
            if type is not None and (type.element is not None or type.kind in _PARSED):
                made = self._as(side, type)
                if made is not side:
                    side.replace(made)

    def _set(self, node: exp.Expr) -> exp.Expr | None:
        """`x = ANY ('{1,2}')`: the literal is an array of what x is."""
        literal = node.this.unnest()
        comparison = node.parent
        if not (isinstance(literal, exp.Literal) and literal.is_string) or comparison is None:
            return None
        other = comparison.expression if comparison.this is node else comparison.this
        type = self._type(other) or STRING
        if type.element is not None:
            return None
        made = self._constant(literal, array_of(type))
        return None if made is None else node.__class__(this=made)

    def _compared_with_set(self, node: exp.Expr) -> exp.Expr | None:
        """`x = ANY (NULL)` is unknown: to DuckDB an array that is NULL has no elements."""
        for side in (node.this, node.expression):
            if isinstance(side, exp.Any | exp.All):
                array = side.this.unnest()
                if isinstance(array, exp.Query | exp.Array | exp.Subquery):
                    return None
                known = exp.Not(this=exp.Is(this=array.copy(), expression=exp.Null()))
                return exp.Case(ifs=[exp.If(this=known, true=node.copy())])
        return None

    def _extreme(self, node: exp.Greatest | exp.Least) -> exp.Expr | None:
        """Of intervals, which DuckDB compares by their fields there."""
        if self._type(node) != INTERVAL:
            return None
        parts = [self._as(part, INTERVAL).copy() for part in (node.this, *node.expressions)]
        if len(parts) > _EXTREMES_MAX:
            raise SQLError(
                "0A000",
                f"{node.key} of more than {_EXTREMES_MAX} intervals is not supported",
                position=position_of(node),
                hint=f"Nest it: {node.key}(a, {node.key}(b, c)).",
            )
        name = f"interval_{node.key}"
        made = parts[0]
        for part in parts[1:]:
            made = _call(name, made, part)
        return made

    def _subscript(self, node: exp.Bracket) -> exp.Expr | None:
        base = self._type(node.this)
        item = node.expressions[0]
        if base == JSONB:
            # sqlglot has moved it by one, as arrays begin with 1, but where it saw a document.
            if isinstance(item.unnest(), exp.Neg | exp.Literal) and not item.is_string:
                place = int(item.sql()) + (not isinstance(node.this.unnest(), exp.Cast))
                return _call("json_extract", node.this, _call("jsonb_element", _number(place)))
            path = exp.Literal.string(f"$.{_quoted(item.name)}") if item.is_string else None
            return _call("json_extract", node.this, path or self._path(item))
        if base is None or base.element is None:
            return None
        if isinstance(item, exp.Slice):
            return _slice(node.this, item)
        if isinstance(item, exp.Literal):
            return None
        if isinstance(item, exp.Null):
            return exp.cast(exp.null(), base.element.duckdb_name, dialect="duckdb")
        # DuckDB counts from the end what PostgreSQL does not find.
        found = exp.Bracket(this=node.this.copy(), expressions=[item.copy()])
        condition = exp.GT(this=item.copy(), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=condition, true=found)])

    def _function(self, node: exp.Anonymous) -> exp.Expr | None:
        name, given = node.name.lower(), node.expressions
        if name == "jsonb_agg" and len(given) == 1:
            return _aggregated(node, given[0])
        if name in ("jsonb_extract_path_text", "json_extract_path_text") and given:
            return _call("jsonb_text_at_path", given[0], exp.Array(expressions=given[1:]))
        if name in ("jsonb_extract_path", "json_extract_path") and given:
            return _call("jsonb_at_path", given[0], exp.Array(expressions=given[1:]))
        if name == "jsonb_set" and len(given) in (3, 4):
            missing = given[3] if len(given) == 4 else exp.true()
            return _call(name, given[0], self._as(given[1], TEXTS), self._as(given[2], JSONB),
                         missing)  # fmt: skip
        if name in _RENAMED:
            arguments = [self._json_argument(argument) for argument in given]
            return _call(_RENAMED[name], *arguments)
        same = name.replace("json_", "jsonb_")
        if same in _DOCUMENT_FUNCTIONS and given:
            return _call(same, self._as(given[0], JSONB), *given[1:])
        return None

    def _json_argument(self, node: exp.Expr) -> exp.Expr:
        """A value as PostgreSQL's to_jsonb prints it: times in ISO 8601."""
        type = self._type(node)
        if type == INTERVAL:
            return _call("interval_text", node)
        if type is not None and type.kind in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ):
            text = exp.cast(node.copy(), "text")
            spaced = [exp.Literal.string(" "), exp.Literal.string("T")]
            made = _call("replace", text, *spaced)
            zone = exp.Literal.string(":00")
            return made if type.kind is TypeKind.TIMESTAMP else _call("concat", made, zone)
        return node


_MOMENTS = (TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.DATE)
_PARSED = (TypeKind.TIME, TypeKind.INTERVAL, TypeKind.JSONB)
_OF_DOCUMENTS = {
    TypeKind.INT8: "jsonb_integer",
    TypeKind.DECIMAL: "jsonb_number",
    TypeKind.FLOAT8: "jsonb_number",
    TypeKind.BOOL: "jsonb_truth",
}
_EXTREMES_MAX = 8
"""Intervals that greatest() compares: each doubles what DuckDB parses."""
_RENAMED = {
    "to_jsonb": "to_json",
    "to_json": "to_json",
    "array_to_json": "to_json",
    "jsonb_build_object": "json_object",
    "json_build_object": "json_object",
    "jsonb_build_array": "json_array",
    "json_build_array": "json_array",
}
_DOCUMENT_FUNCTIONS = ("jsonb_typeof", "jsonb_array_length", "jsonb_strip_nulls", "jsonb_pretty")


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _number(value: int) -> exp.Expr:
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def _slice(array: exp.Expr, item: exp.Slice) -> exp.Expr:
    """Bounds are places: DuckDB counts those below 1 from the end."""
    low, high = item.this, item.expression
    return _call(
        "array_slice_of",
        array,
        exp.Literal.number(1) if low is None else low.copy(),
        exp.Literal.number(1 << 31) if high is None else high.copy(),
    )


def _step(step: exp.Expr) -> str:
    if isinstance(step, exp.JSONPathSubscript):
        place = step.this
        return f"[#{place}]" if isinstance(place, int) and place < 0 else f"[{place}]"
    return f".{_quoted(str(step.this))}"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _array_length(node: exp.ArraySize) -> exp.Expr | None:
    """NULL of an empty array, and of a dimension that it lacks."""
    dimension = node.expression
    if dimension is None:
        return None
    if isinstance(dimension, exp.Literal) and dimension.this != "1":
        return exp.cast(exp.null(), "BIGINT")
    return _call("array_upper", node.this, dimension)


def _aggregated(node: exp.Expr, argument: exp.Expr) -> exp.Expr | None:
    """`jsonb_agg(x ORDER BY y)`: NULL of no rows, as a list is."""
    listed = exp.ArrayAgg(this=argument)
    wrapped = node.parent if isinstance(node.parent, exp.Filter | exp.Window) else None
    if wrapped is None:
        return _call("to_json", listed)
    node.replace(listed)
    wrapped.replace(_call("to_json", wrapped))
    return None


def _object_aggregate(node: exp.Expr) -> exp.Expr | None:
    """No object has no member: that of no rows is NULL."""
    pair = node.expressions or [node.this, node.expression]
    made = exp.Anonymous(this="json_group_object", expressions=pair)
    text = exp.Nullif(this=exp.cast(made, "text"), expression=exp.Literal.string("{}"))
    return _call("json", text)
