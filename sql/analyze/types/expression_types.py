"""The types of expressions, as far as they are plain to see before DuckDB sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ....catalog.values.column_types import ColumnType, array_of
from ....catalog.values.type_kinds import TypeKind
from ...results.arithmetic import operation
from ..scalars import OPERATORS, broad_type_of_cast, parameter_number

INT8 = ColumnType(TypeKind.INT8)
FLOAT8 = ColumnType(TypeKind.FLOAT8)
DECIMAL = ColumnType(TypeKind.DECIMAL)
STRING = ColumnType(TypeKind.STRING)
BOOL = ColumnType(TypeKind.BOOL)
DATE = ColumnType(TypeKind.DATE)
TIMESTAMPTZ = ColumnType(TypeKind.TIMESTAMPTZ)
INTERVAL = ColumnType(TypeKind.INTERVAL)
JSONB = ColumnType(TypeKind.JSONB)
WIDE_INTEGER = ColumnType(TypeKind.DECIMAL, 38, 0)
"""The result type of sum() over integers."""

Lookup = Callable[[exp.Column], ColumnType | None]
Hints = Sequence[ColumnType | None]

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
TEXTUAL = (
    exp.DPipe, exp.Like, exp.ILike, exp.RegexpLike, exp.Lower, exp.Upper, exp.Length, exp.Concat,
    exp.Trim, exp.Substring,
)  # fmt: skip
ALTERNATIVES = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif, exp.In, exp.Between)
NUMERIC = (exp.Abs, exp.Sqrt, exp.Ln, exp.Exp, exp.Pow, exp.Floor, exp.Ceil, exp.Round)
TRUTHS = (
    exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Exists,
    exp.RegexpLike, exp.ArrayContainsAll, exp.ArrayContainedBy, exp.JSONBContainsTopKey,
    exp.JSONBContainsAnyTopKeys, exp.JSONBContainsAllTopKeys, *COMPARISONS,
)  # fmt: skip

DOCUMENTS = (exp.JSONExtract, exp.JSONBExtract, exp.JSONBDeleteAtPath, exp.ParseJSON,
             exp.JSONArrayAgg, exp.JSONObjectAgg, exp.JSONBObjectAgg)  # fmt: skip
"""Operators and functions that return JSONB."""

_RETURN_DOCUMENTS = (
    "to_jsonb to_json jsonb_build_object json_build_object jsonb_build_array json_build_array "
    "jsonb_agg jsonb_set jsonb_strip_nulls json_strip_nulls jsonb_extract_path "
    "row_to_json array_to_json json_extract_path json_agg jsonb_in "
    "jsonb_member jsonb_names jsonb_place jsonb_steps jsonb_element jsonb_at_path "
    "jsonb_delete_path jsonb_concat jsonb_delete jsonb_of jsonb_built_object "
    "jsonb_built_array jsonb_gathered_object jsonb_pair_value"
)
_RETURN_TEXTS = (
    "jsonb_typeof json_typeof jsonb_pretty jsonb_extract_path_text json_extract_path_text "
    "array_to_string jsonb_member_text jsonb_place_text jsonb_steps_text jsonb_element_text "
    "jsonb_text_at_path jsonb_names_text jsonb_same jsonb_same_text jsonb_pair_key "
    "jsonb_pair_text"
)
_RETURN_INTEGERS = "jsonb_array_length json_array_length cardinality array_upper array_lower"

FUNCTIONS: dict[str, ColumnType] = {
    **dict.fromkeys(_RETURN_DOCUMENTS.split(), JSONB),
    **dict.fromkeys(_RETURN_TEXTS.split(), STRING),
    **dict.fromkeys(_RETURN_INTEGERS.split(), INT8),
    "jsonb_elements": array_of(JSONB),
    **dict.fromkeys(("jsonb_element_texts", "jsonb_keys"), array_of(STRING)),
    "age": INTERVAL,
}
"""The types of functions that sqlglot has no node for."""


def type_of(tree: exp.Expr, lookup: Lookup, declared: Hints = ()) -> ColumnType | None:
    """The type of an expression, as far as it is plain to see; None for the rest."""

    def inner(part: exp.Expr | None) -> ColumnType | None:
        return None if part is None else type_of(part, lookup, declared)

    match tree:
        case exp.Paren() | exp.Alias() | exp.Neg() | exp.Max() | exp.Min() | exp.Abs():
            return inner(tree.this)
        case exp.Literal():
            if tree.is_string:
                return None
            return INT8 if tree.this.isdecimal() else DECIMAL
        case exp.Boolean():
            return BOOL
        case exp.Column():
            return lookup(tree)
        case exp.Parameter():
            number = parameter_number(tree)
            return declared[number - 1] if 0 < number <= len(declared) else None
        case exp.Cast():
            return broad_type_of_cast(tree)
        case exp.CurrentTimestamp():
            return TIMESTAMPTZ
        case exp.CurrentDate():
            return DATE
        case exp.Count() | exp.Length():
            return INT8
        case exp.Sum():
            summed = inner(tree.this)
            return WIDE_INTEGER if summed == INT8 else summed
        case exp.Avg():
            return FLOAT8
        case exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Nullif():
            return next((found for part in tree.iter_expressions() if (found := inner(part))), None)
        case exp.Interval():
            return INTERVAL
        case exp.Array() | exp.ArrayAgg():
            return _of_array(tree, inner)
        case exp.Bracket():
            return _of_subscript(inner(tree.this), tree)
        case exp.Any() | exp.All():
            found = inner(tree.this)
            return None if found is None else found.element
        case exp.Case():
            results = [branch.args.get("true") for branch in tree.args.get("ifs") or ()]
            results.append(tree.args.get("default"))
            return next((found for part in results if (found := inner(part))), None)
    if isinstance(tree, DOCUMENTS):
        return JSONB
    if isinstance(tree, exp.Anonymous):
        return FUNCTIONS.get(tree.name.lower())
    if isinstance(tree, exp.DPipe):
        return _of_concatenation(inner(tree.this), inner(tree.expression))
    if type(tree) in OPERATORS:
        return _of_arithmetic(OPERATORS[type(tree)], inner(tree.this), inner(tree.expression))
    if isinstance(tree, TRUTHS):
        return BOOL
    return STRING if isinstance(tree, TEXTUAL) else None


def _of_arithmetic(
    operator: str, left: ColumnType | None, right: ColumnType | None
) -> ColumnType | None:
    if left is None or right is None:
        return left or right
    if INTERVAL in (left, right) and operator in "*/":
        return INTERVAL
    found = operation(operator, left.kind, right.kind)
    return found[0] if found is not None else None


def _of_array(
    tree: exp.Expr, inner: Callable[[exp.Expr | None], ColumnType | None]
) -> ColumnType | None:
    items = tree.expressions if isinstance(tree, exp.Array) else [tree.this]
    items = [item.this if isinstance(item, exp.Order) else item for item in items]
    found = next((type for item in items if (type := inner(item))), None)
    if found is None and any(isinstance(item, exp.Literal) for item in items):
        found = STRING
    return None if found is None or found.element is not None else array_of(found)


def _of_subscript(base: ColumnType | None, tree: exp.Bracket) -> ColumnType | None:
    if base is None or base.element is None:
        return base if base == JSONB else None
    return base if isinstance(tree.expressions[0], exp.Slice) else base.element


def _of_concatenation(left: ColumnType | None, right: ColumnType | None) -> ColumnType:
    """`||` is for texts, unless one of the two is a document or an array."""
    for type in (left, right):
        if type is not None and (type == JSONB or type.element is not None):
            return type
    return STRING
