"""Arrays: functions that DuckDB lacks or has with another meaning, and patterns of a whole array.

Arrays have one dimension. What would make one of several is refused (0A000) at every way in:
`ARRAY[ARRAY[1]]`, `array_agg(a)`, `'{{1}}'::INT8[]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import sqlglot
from sqlglot import exp

from ...catalog.values.column_types import INTERVAL, STRING, TIME, ColumnType, array_of
from ...catalog.values.session_zone import UTC_NAME, zone_name
from ...catalog.values.type_kinds import TypeKind
from ..analyze.scalars import NotNative, Scalar, adapt, compile_scalar
from ..analyze.types.derived_types import widest
from ..analyze.types.types import Types
from ..builtins.documents.calls import is_literal
from ..builtins.macros import DUCKDB, cast_to, duckdb, plain
from ..builtins.signatures import related
from ..syntax.trees import position_of, unsupported

WRITTEN = {
    TypeKind.FLOAT4: "postgres_single_text({0})",
    TypeKind.FLOAT8: "postgres_float_text({0})",
    TypeKind.BYTES: "'\\x' || lower(hex({0}))",
    TypeKind.INTERVAL: "interval_text({0})",
    TypeKind.BOOL: "CASE WHEN {0} THEN 't' WHEN NOT {0} THEN 'f' END",
    TypeKind.TIMESTAMPTZ: "CAST({0} AS VARCHAR)",
}
"""Values as the texts that PostgreSQL writes in arrays and by concat()."""
ELEMENT = exp.column("e")
"""The variable for an element in `each`."""


def each(array: exp.Expr, made: exp.Expr) -> exp.Expr:
    """Returns the array of what is made of each ELEMENT."""
    of_one = exp.Lambda(this=made, expressions=[exp.to_identifier("e")])
    return plain("list_transform", array, of_one)


def element_texts(array: exp.Expr, element: ColumnType, *, truths: str | None = None) -> exp.Expr:
    """The elements as PostgreSQL writes them."""
    written = WRITTEN.get(element.broad.kind)
    if element.kind is TypeKind.BOOL:
        written = truths or written
    if written is None:
        return exp.Cast(this=array, to=exp.DataType.build("VARCHAR[]", dialect="duckdb"))
    case = f"CASE WHEN e IS NOT NULL THEN {written.format('e')} END"
    return each(array, sqlglot.parse_one(case, dialect=DUCKDB))


def joined(tree: exp.ArrayToString, types: Types) -> exp.Expr | None:
    """array_to_string(): NULL is left out, unless there is a text for it."""
    found = types.declared(tree.this)
    if found is None or found.element is None:
        return None
    texts = element_texts(tree.this.copy(), found.element)
    null = tree.args.get("null")
    if null is not None:
        each = "list_transform(:a, lambda e: coalesce(e, :n))"
        texts = duckdb(each, a=texts, n=exp.cast(null.copy(), "VARCHAR"))
    constant = isinstance(tree.expression.unnest(), exp.Literal)
    return duckdb(_JOINED if constant else _JOINED_BY_EACH, a=texts, d=tree.expression)


_JOINED = "CASE WHEN :d IS NOT NULL THEN array_to_string(:a, CAST(:d AS VARCHAR)) END"
_JOINED_BY_EACH = """
CASE WHEN :d IS NULL OR :a IS NULL THEN NULL
WHEN len(list_filter(:a, lambda e: e IS NOT NULL)) = 0 THEN ''
ELSE list_reduce(list_filter(:a, lambda e: e IS NOT NULL),
    lambda p, q: p || CAST(:d AS VARCHAR) || q) END
"""
"""DuckDB's own takes one separator for all rows."""


def position(tree: exp.ArrayPosition, types: Types) -> exp.Expr:
    begin = tree.args.get("zero_based") or exp.Literal.number(1)
    return plain("array_position_from", tree.this, tree.expression, begin)


class Typed(Protocol):
    """Makes a parameter of DuckDB's statement of a scalar; those that are `said` alike are one."""

    def __call__(
        self, scalar: Scalar, type: ColumnType, said: tuple[str, ...] = ()
    ) -> exp.Expr: ...


def _constant(node: exp.Expr, type: ColumnType, typed: Typed) -> exp.Expr | None:
    try:
        return typed(adapt(compile_scalar(node, {}), type, position=position_of(node)), type)
    except NotNative:
        return None


def _cast(node: exp.Cast, types: Types, typed: Typed) -> exp.Expr | None:
    target, source = types.of(node), types.of(node.this)
    if target is None:
        return None
    wide = target.element is not None or target.kind in _PARSED
    if wide and is_literal(node.this):
        return _constant(node, target, typed)
    if target == STRING and source == INTERVAL:
        return _call("interval_text", node.this)
    if target == STRING and source is not None and source.element is not None:
        return _call("array_text", element_texts(node.this, source.element))
    return None


def _removed(node: exp.ArrayRemove, types: Types, typed: Typed) -> exp.Expr:
    """The array is of the type that its elements and the one to remove have in common."""
    array: exp.Expr = node.this
    found, removed = types.of(array), types.of(node.expression)
    element = None if found is None else found.element
    if element is not None and removed is not None and related(element, removed):
        common = widest([element, removed])
        array = array if common.kind is element.kind else cast_to(array, array_of(common))
    return _call("array_remove", array, node.expression)


def _containment(node: exp.Expr, types: Types, typed: Typed) -> exp.Expr | None:
    left, right = node.this, node.expression
    type = types.of(left) or types.of(right)
    if type is None or type.element is None:
        return None
    if isinstance(node, exp.ArrayOverlaps):
        return _call("list_has_any", left, right)
    if isinstance(node, exp.ArrayContainedBy):
        left, right = right, left
    return _call("array_has_all_of", left, right)


def _concatenation(node: exp.DPipe, types: Types, typed: Typed) -> exp.Expr | None:
    left, right, type = node.this, node.expression, types.of(node)
    if type is None or type.element is None:
        return None
    left_type, right_type = types.of(left), types.of(right)
    if right_type is not None and right_type.element is None:
        return _call("list_append", left, right)
    if left_type is not None and left_type.element is None:
        return _call("list_prepend", left, right)
    return _call("array_join", left, right)


def _difference(node: exp.Sub, types: Types, typed: Typed) -> exp.Expr | None:
    left, right = types.of(node.this), types.of(node.expression)
    instants = left == right and left is not None and left.kind is TypeKind.TIMESTAMPTZ
    if instants and zone_name() != UTC_NAME:
        # What has passed, and not what a calendar of the zone counts.
        utc = exp.Literal.string(UTC_NAME)
        moments = [_call("timezone", utc.copy(), part) for part in (node.this, node.expression)]
        return exp.paren(exp.Sub(this=moments[0], expression=moments[1]), copy=False)
    if left == TIME and right == TIME:
        unit = exp.Literal.string("microsecond")
        return _call("to_microseconds", _call("date_diff", unit, node.expression, node.this))
    return None


def _set(node: exp.Any | exp.All, types: Types, typed: Typed) -> exp.Expr | None:
    """`x = ANY ('{1,2}')`: the literal is an array of what x is."""
    comparison = node.parent
    if not is_literal(node.this) or comparison is None:
        return None
    other = comparison.expression if comparison.this is node else comparison.this
    type = types.of(other) or STRING
    if type.element is not None:
        return None
    made = _constant(node.this.unnest(), array_of(type), typed)
    return None if made is None else node.__class__(this=made)


def _compared_with_set(node: exp.Expr, types: Types, typed: Typed) -> exp.Expr | None:
    """`x = ANY (NULL)` is unknown: to DuckDB an array that is NULL has no elements."""
    for side in (node.this, node.expression):
        if isinstance(side, exp.Any | exp.All):
            array = side.this.unnest()
            if isinstance(array, exp.Query | exp.Array | exp.Subquery):
                return None
            known = exp.Not(this=exp.Is(this=array.copy(), expression=exp.Null()))
            found = _sought(node, array, types) or node.copy()
            return exp.Case(ifs=[exp.If(this=known, true=found)])
    return None


def _sought(node: exp.Expr, array: exp.Expr, types: Types) -> exp.Expr | None:
    """`x IN (SELECT unnest(array))`, which seeks by hash where `x = ANY (array)` compares with
    each element; for an array that is one for all rows of a WHERE."""
    if not isinstance(node, exp.EQ) or not isinstance(node.expression, exp.Any):
        return None
    given = array.this.unnest() if isinstance(array, exp.Cast) else array
    type, whole = types.of(node.this), types.of(array)
    plain = whole is None or (type is not None and whole.element == type)
    where = node.find_ancestor(exp.Where, exp.Join, exp.Query)
    if not isinstance(given, exp.Parameter) or not plain or not isinstance(where, exp.Where):
        return None
    if not isinstance(where.parent, exp.Select) or not isinstance(node.this, exp.Column):
        return None
    items = exp.select(exp.Anonymous(this="unnest", expressions=[array.copy()]))
    return exp.In(this=node.this.copy(), query=exp.Subquery(this=items))


def _extreme(node: exp.Greatest | exp.Least, types: Types, typed: Typed) -> None:
    if types.of(node) == INTERVAL:
        raise unsupported(f"{node.key}() of intervals", node, "Say CASE WHEN a < b …")


def _subscript(node: exp.Bracket, types: Types, typed: Typed) -> exp.Expr | None:
    base = types.of(node.this)
    item = node.expressions[0]
    if base is None or base.element is None:
        return None
    if isinstance(item, exp.Slice):
        return _slice(node.this, item)
    if isinstance(item, exp.Literal):
        return None
    if isinstance(item, exp.Null):
        return exp.cast(exp.null(), base.element.duckdb_name, dialect="duckdb")
    # DuckDB counts from the end what PostgreSQL does not find.
    condition = exp.GT(this=item.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=condition, true=node.copy())])


_PARSED = (TypeKind.TIME, TypeKind.INTERVAL, TypeKind.JSONB)


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _slice(array: exp.Expr, item: exp.Slice) -> exp.Expr:
    """Bounds are places: DuckDB counts those below 1 from the end."""
    low, high = item.this, item.expression
    return _call(
        "array_slice_of",
        array,
        exp.Literal.number(1) if low is None else low.copy(),
        exp.Literal.number(1 << 31) if high is None else high.copy(),
    )


def _length(node: exp.ArraySize, types: Types, typed: Typed) -> exp.Expr | None:
    """NULL of an empty array, and of a dimension that it lacks."""
    dimension = node.expression
    return None if dimension is None else _call("array_upper", node.this, dimension)


OperatorRule = Callable[[Any, Types, Typed], exp.Expr | None]
OPERATORS: dict[type[exp.Expr], OperatorRule] = {
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    **dict.fromkeys((exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps), _containment),
    exp.DPipe: _concatenation,
    exp.Sub: _difference,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _compared_with_set),
    **dict.fromkeys((exp.Greatest, exp.Least), _extreme),
    exp.ArrayRemove: _removed,
    **dict.fromkeys((exp.Any, exp.All), _set),
    exp.ArraySize: _length,
    exp.Bracket: _subscript,
}
"""The rules of operators on arrays and times. Operands move into the replacement: their types are
kept with them."""
