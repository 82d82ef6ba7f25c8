"""PostgreSQL's operators and functions on arrays and times, as DuckDB has them.

    tags || 'new'           list_append(tags, 'new')
    at - '09:00'::time      to_microseconds(date_diff('microsecond', …, at))

What the same sign does depends on its operands, so their types are looked for; where they are not
plain to see the sign stays as it is, and DuckDB says what it makes of it. The functions are those
that `sql.builtins.array_functions` defines.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ...catalog.values.column_types import ColumnType, array_of
from ...catalog.values.session_zone import UTC_NAME, zone_name
from ...catalog.values.type_kinds import TypeKind
from ..analyze.scalars import NotNative, Scalar, adapt, compile_scalar
from ..analyze.types.derived_types import widest
from ..analyze.types.types import INTERVAL, STRING, Types
from ..builtins.signatures import related
from ..builtins.templates import cast_to
from ..parse import position_of
from ..syntax.refusals import unsupported
from ..syntax.walks import stepping, walk
from .arrays import element_texts

TEXTS = array_of(STRING)
_TIME = ColumnType(TypeKind.TIME)

Typed = Callable[[Scalar, ColumnType], exp.Expr]
"""A scalar as a parameter of DuckDB's statement."""


def rewrite(query: exp.Expr, types: Types, typed: Typed) -> None:
    """Replaces them in the query, inner ones first."""
    nodes = list(walk(query))
    for node in nodes:
        types.of(node)  # before anything is replaced
    rewriter = _Rewriter(types, typed)
    for node in stepping(reversed(nodes)):
        made = rewriter.made_of(node)
        if made is not None:
            node.replace(made)
            types.say(made, types.of(node))


class _Rewriter:
    """Replaces nodes. Operands move into the replacement: their types are kept with them."""

    def __init__(self, types: Types, typed: Typed) -> None:
        self._types = types
        self._typed = typed

    def made_of(self, node: exp.Expr) -> exp.Expr | None:
        """Returns the replacement of the node; None where it stays."""
        match node:
            case exp.Interval():
                return self._constant(node, INTERVAL)
            case exp.Cast():
                return self._cast(node)
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
                return _call("array_remove", self._widened(node), node.expression)
            case exp.Any() | exp.All():
                return self._set(node)
            case exp.ArraySize():
                return _array_length(node)
            case exp.Bracket():
                return self._subscript(node)
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
        if target == STRING and source is not None and source.element is not None:
            return _call("array_text", element_texts(node.this, source.element))
        return None

    def _widened(self, node: exp.ArrayRemove) -> exp.Expr:
        """The array, of the type that its elements and the one to remove have in common."""
        array: exp.Expr = node.this
        found, removed = self._type(array), self._type(node.expression)
        element = None if found is None else found.element
        if element is None or removed is None or not related(element, removed):
            return array
        common = widest([element, removed])
        return array if common.kind is element.kind else cast_to(array, array_of(common))

    def _containment(self, node: exp.Expr) -> exp.Expr | None:
        left, right = node.this, node.expression
        types = (self._type(left), self._type(right))
        type = next((type for type in types if type is not None), None)
        if type is None or type.element is None:
            return None
        left, right = self._as(left, type), self._as(right, type)
        if isinstance(node, exp.ArrayOverlaps):
            return _call("list_has_any", left, right)
        if isinstance(node, exp.ArrayContainedBy):
            left, right = right, left
        return _call("array_has_all_of", left, right)

    def _concatenation(self, node: exp.DPipe) -> exp.Expr | None:
        left, right, type = node.this, node.expression, self._type(node)
        if type is None or type == STRING:
            return None
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
        times = left is not None and left.kind in _MOMENTS
        literal = self._as(node.expression, left) if times and left is not None else None
        if literal is not None and literal is not node.expression:
            node.expression.replace(literal)
            right = left
        instants = left == right and left is not None and left.kind is TypeKind.TIMESTAMPTZ
        if instants and zone_name() != UTC_NAME:
            # What has passed, and not what a calendar of the zone counts.
            utc = exp.Literal.string(UTC_NAME)
            moments = [_call("timezone", utc.copy(), part) for part in (node.this, node.expression)]
            return exp.paren(exp.Sub(this=moments[0], expression=moments[1]), copy=False)
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
                found = self._sought(node, array) or node.copy()
                return exp.Case(ifs=[exp.If(this=known, true=found)])
        return None

    def _sought(self, node: exp.Expr, array: exp.Expr) -> exp.Expr | None:
        """`x IN (SELECT unnest(array))`, which seeks by hash where `x = ANY (array)` compares with
        each element; for an array that is one for all rows of a WHERE."""
        if not isinstance(node, exp.EQ) or not isinstance(node.expression, exp.Any):
            return None
        given = array.this.unnest() if isinstance(array, exp.Cast) else array
        type, whole = self._type(node.this), self._type(array)
        plain = whole is None or (type is not None and whole.element == type)
        where = node.find_ancestor(exp.Where, exp.Join, exp.Query)
        if not isinstance(given, exp.Parameter) or not plain or not isinstance(where, exp.Where):
            return None
        if not isinstance(where.parent, exp.Select) or not isinstance(node.this, exp.Column):
            return None
        items = exp.select(exp.Anonymous(this="unnest", expressions=[array.copy()]))
        return exp.In(this=node.this.copy(), query=exp.Subquery(this=items))

    def _extreme(self, node: exp.Greatest | exp.Least) -> exp.Expr | None:
        """Returns greatest() or least() of intervals, which DuckDB compares by their fields."""
        if self._type(node) != INTERVAL:
            return None
        parts = [self._as(part, INTERVAL).copy() for part in (node.this, *node.expressions)]
        if len(parts) > _EXTREMES_MAX:
            raise unsupported(
                f"{node.key} of more than {_EXTREMES_MAX} intervals",
                node,
                f"Nest it: {node.key}(a, {node.key}(b, c)).",
            )
        name = f"interval_{node.key}"
        made = parts[0]
        for part in parts[1:]:
            made = _call(name, made, part)
        return made

    def _subscript(self, node: exp.Bracket) -> exp.Expr | None:
        base = self._type(node.this)
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
        found = node.copy()
        condition = exp.GT(this=item.copy(), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=condition, true=found)])


_MOMENTS = (TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.DATE)
_PARSED = (TypeKind.TIME, TypeKind.INTERVAL, TypeKind.JSONB)
_EXTREMES_MAX = 8
"""Intervals that greatest() compares: each doubles what DuckDB parses."""


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


def _array_length(node: exp.ArraySize) -> exp.Expr | None:
    """NULL of an empty array, and of a dimension that it lacks."""
    dimension = node.expression
    if dimension is None:
        return None
    if isinstance(dimension, exp.Literal) and dimension.this != "1":
        return exp.cast(exp.null(), "BIGINT")
    return _call("array_upper", node.this, dimension)
