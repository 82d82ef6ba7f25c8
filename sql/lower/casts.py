"""Casts: what they make of values that DuckDB would convert otherwise."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.column_types import STRING, ColumnType
from ...catalog.values.type_kinds import FLOATS, TypeKind
from ..analyze.scalars import broad_type_of_cast
from ..analyze.types.derived_types import SCALE_UNKNOWN
from ..analyze.types.types import Types, untyped
from ..builtins.evaluator_functions import TEXTS_READ
from ..builtins.macros import call, cast_to, duckdb, duckdb_type, plain
from ..syntax.trees import CAST_TYPE, taken
from . import arrays


def cast(node: exp.Cast, types: Types) -> exp.Expr | None:
    """Returns the replacement of a cast, or None where it stays."""
    if isinstance(node, exp.TryCast) or untyped(node.this):
        return None
    source, target = types.of(node.this), broad_type_of_cast(node)
    if source is None and target is not None and target.bare:
        parameter = isinstance(node.this.unnest(), exp.Parameter)
        return None if parameter else call("bare_decimal", taken(node.this))
    if source is None or target is None:
        return None
    if source.element is not None and target.element is not None:
        return _of_array(node, source.element, target.element, types)
    if source.kind is TypeKind.STRING:
        return _of_text(node, target)
    if source.kind in FLOATS:
        return _of_float(node, source, target)
    if target.kind is TypeKind.FLOAT4:
        return call("single", exp.cast(taken(node.this), "DOUBLE", copy=False))
    if source.kind is TypeKind.BYTES and target.kind is TypeKind.STRING:
        return duckdb("'\\x' || lower(hex(:x))", x=taken(node.this))
    if source.kind is TypeKind.TIMESTAMPTZ and target.kind is TypeKind.TIME:
        return duckdb("CAST(CAST(:x AS TIMESTAMP) AS TIME)", x=node.this)
    return None


def _of_text(node: exp.Cast, target: ColumnType) -> exp.Expr | None:
    """A text is read as a literal of the type is."""
    kind = target.kind
    if kind is TypeKind.INT8:
        node.set("this", call("integer_of_text", taken(node.this)))
    elif kind is TypeKind.DECIMAL:
        bare = CAST_TYPE in node.meta and target.decimal[1] == SCALE_UNKNOWN
        node.set(
            "this", call("exact_decimal_of_text" if bare else "decimal_of_text", taken(node.this))
        )
    elif kind is TypeKind.BOOL:
        return call("bool_of_text", taken(node.this))
    elif kind in TEXTS_READ:
        return plain(f"text_as_{kind.value.lower()}", taken(node.this))
    elif target.element is not None:
        texts = plain("text_as_array", taken(node.this))
        return exp.Cast(this=texts, to=duckdb_type(target))
    return None


def _of_float(node: exp.Cast, source: ColumnType, target: ColumnType) -> exp.Expr | None:
    single = source.kind is TypeKind.FLOAT4
    match target.kind:
        case TypeKind.FLOAT4 if not single:
            return call("single", taken(node.this))
        case TypeKind.STRING:
            node.set("this", call("single_text" if single else "float_text", taken(node.this)))
        case TypeKind.INT8:
            node.set("this", plain("round_even", taken(node.this), exp.Literal.number(0)))
        case TypeKind.DECIMAL:
            node.set(
                "this",
                call("decimal_of_single" if single else "decimal_of_float", taken(node.this)),
            )
    return None


def _of_array(
    node: exp.Cast, source: ColumnType, target: ColumnType, types: Types
) -> exp.Expr | None:
    """Element by element, where it makes a difference."""
    if target == STRING and source != STRING:
        return arrays.element_texts(node.this.copy(), source, truths="CAST(e AS VARCHAR)")
    element = arrays.ELEMENT.copy()
    types.say(element, source)
    one = cast_to(element, target)
    made = cast(one, types)
    if made is None and one.this is element:
        return None
    return arrays.each(taken(node.this), made or one)
