"""Type resolution as PostgreSQL's parser does it, before the lowering to DuckDB.

Each operator and each call of a known function is one of those that there are, or an error in the
words of the statement (42883); what must have one type in common has it (42804); a text literal is
of the type that is wanted of it:

    1 = '1.0'                   1 = CAST('1.0' AS INT8), which is 22P02
    coalesce(price, '0')        coalesce(price, CAST('0' AS DECIMAL))
    SELECT 1 UNION SELECT 'x'   SELECT 1 UNION SELECT CAST('x' AS INT8)
    at - '2024-01-01'           at - CAST('2024-01-01' AS TIMESTAMP)

Nothing is decided where a type is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from ....catalog.values.column_types import BOOL, FLOAT4, FLOAT8, INT8, STRING, ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import FLOATS, TypeKind
from ....kvlayer.process.fibre import give_way
from ...builtins.known_functions import called
from ...builtins.macros import cast_in_place, cast_to
from ...builtins.signatures import (
    ARITHMETIC,
    COMPARISONS,
    NUMBERS,
    SIGNS,
    Ambiguous,
    Argument,
    Chosen,
    Given,
    comparable,
    type_name,
)
from ...syntax.trees import error_at, position_of, stepping, unsupported, walk
from . import conversions, rows
from .conversions import resolve_cast
from .types import Types, untyped

_CASTS_HINT = "You might need to add explicit type casts."


def resolve_types(query: exp.Expr, types: Types) -> None:
    """Types the literals of a query in place. Raises SQLError where PostgreSQL finds no
    operator, function or common type."""
    nodes = list(walk(query))
    for node in nodes:
        types.of(node)  # before anything is replaced
    for node in stepping(reversed(nodes)):  # inner ones first: what is cast is copied
        if types.strict:
            _check(node, types)
        elif isinstance(node, _ALTERNATIVES):
            _alternatives(node, types)
        elif isinstance(node, ARITHMETIC):
            _literals_of_operator(node, types)


def _check(node: exp.Expr, types: Types) -> None:
    for check in _CHECKS.get(type(node), (_check_call,)):
        check(node, types)


def no_operator(sign: str, left: Argument, right: Argument, tree: exp.Expr) -> SQLError:
    """Returns the error (42883) for an operator between these types."""
    return error_at(
        tree,
        "42883",
        f"operator does not exist: {type_name(left)} {sign} {type_name(right)}",
        _CASTS_HINT,
    )


_OF_ARRAYS = (exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps)


def _check_operator(node: exp.Expr, types: Types) -> None:
    sides = [node.this, node.args["expression"]]
    if any(isinstance(side, exp.Tuple) for side in sides):
        return
    given = [types.given(side) for side in sides]
    chosen = _meant(node, types, given)
    if chosen is None:
        return
    if isinstance(node, _OF_ARRAYS) and not comparable(given[0], given[1]):
        raise no_operator(SIGNS[type(node)], given[0], given[1], node)
    for side, wanted in zip(sides, chosen.wanted, strict=True):
        if isinstance(side, exp.Any | exp.All):
            continue
        if wanted == FLOAT8 and FLOAT4 in given:
            conversions.widened(side, types)
        elif isinstance(side.unnest(), exp.Null) and wanted is not None:
            side.replace(cast_to(exp.null(), wanted))
        else:
            conversions.as_type(side, wanted, types)
    if isinstance(node, exp.DPipe) and chosen.result is not None:
        _join_as_texts(sides, chosen, types)


def _check_default(node: exp.Lag | exp.Lead, types: Types) -> None:
    """lag(a, 1, 0.5): both values have the type that they have in common."""
    default = node.args.get("default")
    given, other, common = types.of(node.this), types.of(default), types.of(node)
    if default is None or given is None or other is None or common is None:
        return
    if not comparable(given, other):
        names = ", ".join([type_name(given), type_name(INT8), type_name(other)])
        raise error_at(node, "42883", f"function {node.key}({names}) does not exist", _CASTS_HINT)
    if common.kind is not given.kind:
        cast_in_place(node.this, common)


def _meant(node: exp.Expr, types: Types, given: Sequence[Argument]) -> Chosen | None:
    """The operator's signature; None where that depends on what is not known."""
    sign = SIGNS[type(node)]
    try:
        chosen = types.meant(node)
    except Ambiguous:
        between = f"{type_name(given[0])} {sign} {type_name(given[1])}"
        raise _not_unique(node, "operator", f"operator is not unique: {between}") from None
    if chosen is None and Given.ANYTHING not in given:
        raise no_operator(sign, given[0], given[1], node)
    return chosen


def _not_unique(node: exp.Expr, what: str, message: str) -> SQLError:
    hint = f"Could not choose a best candidate {what}. {_CASTS_HINT}"
    return error_at(node, "42725", message, hint)


def _join_as_texts(sides: Sequence[exp.Expr], chosen: Chosen, types: Types) -> None:
    """`5 || 'x'`: what is no text is cast to one."""
    if chosen.result is None or chosen.result.kind is not TypeKind.STRING:
        return
    for side in sides:
        found = types.of(side)
        if found is not None and found.kind is not TypeKind.STRING:
            cast_in_place(side, STRING)


def _literals_of_operator(node: exp.Expr, types: Types) -> None:
    """In queries on the catalog, whose types are not PostgreSQL's, only numbers are sure."""
    for literal, other in ((node.this, node.expression), (node.expression, node.this)):
        found = types.of(other)
        if found is not None and found.kind in NUMBERS:
            conversions.as_type(literal, found, types)


def _check_comparison(node: exp.Expr, types: Types) -> None:
    left = rows.entries(node.this)
    if isinstance(node, exp.In):
        conversions.listed_as_singles(node, types)
    for other in operands(node):
        right = rows.entries(other)
        if left is None or right is None:
            if left is None and right is None:
                _compare(node, node.this, other, types)
        elif len(left) == len(right):
            for one, another in zip(left, right, strict=True):
                _compare(node, one, another, types)
    if left is not None:
        return
    query = node.args.get("query")
    if isinstance(query, exp.Expr):
        _compare(node, node.this, query, types)


def operands(tree: exp.Expr) -> list[exp.Expr]:
    """Returns the operands that `tree.this` is compared with."""
    match tree:
        case exp.In():
            return list(tree.expressions)
        case exp.Between():
            return [tree.args["low"], tree.args["high"]]
    return [tree.args["expression"]]


def _compare(node: exp.Expr, left: exp.Expr, right: exp.Expr, types: Types) -> None:
    give_way()
    first, second = types.given(left), types.given(right)
    if not comparable(first, second):
        raise no_operator(SIGNS.get(type(node), "="), first, second, node)
    if conversions.compare_in_double(left, right, types):
        return
    for literal, wanted, other in ((left, second, right), (right, first, left)):
        # A constant that meets a decimal column keeps all its digits (`transpile`).
        column = isinstance(other.unnest(), exp.Column)
        if isinstance(wanted, ColumnType) and not (column and wanted.kind is TypeKind.DECIMAL):
            conversions.as_type(literal, wanted, types)


def _check_call(node: exp.Expr, types: Types) -> None:
    call = called(node)
    if call is None:
        return
    name, given = call
    known = [types.given(operand) for operand in given]
    shown = f"function {name}({', '.join(map(type_name, known))})"
    try:
        chosen = types.meant(node)
    except Ambiguous:
        raise _not_unique(node, "function", f"{shown} is not unique") from None
    if chosen is None:
        hint = f"No function matches the given name and argument types. {_CASTS_HINT}"
        raise error_at(node, "42883", f"{shown} does not exist", hint)
    if chosen.takes_array_as_element(known):
        raise rows.several_dimensions(node)
    for operand, wanted in zip(given, chosen.wanted, strict=True):
        if wanted is not None:
            _as_wanted(name, operand, wanted, types)
        elif name in _QUOTED and types.kind(operand) not in (None, TypeKind.STRING):
            cast_in_place(operand, STRING)


def _as_wanted(name: str, operand: exp.Expr, wanted: ColumnType, types: Types) -> None:
    kind = types.kind(operand)
    whole = kind is TypeKind.INT8 and wanted.kind is TypeKind.FLOAT8 and name in _WHOLE
    if whole:
        cast_in_place(operand, wanted)
    elif wanted == FLOAT8 and kind is TypeKind.FLOAT4:
        conversions.widened(operand, types)
    else:
        conversions.as_type(operand, wanted, types)


_QUOTED = ("quote_literal", "quote_nullable")
_WHOLE = ("ceil", "ceiling", "floor", "trunc", "round")
"""Functions of DuckDB's that return integers of integers."""

_ALTERNATIVES = (exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Array)


def _alternatives(node: exp.Expr, types: Types) -> None:
    """The branches of CASE and the like, which have one type."""
    match node:
        case exp.Case():
            # ELSE decides before all others, as in PostgreSQL.
            parts = [node.args["default"]] if node.args.get("default") is not None else []
            parts += [branch.args["true"] for branch in node.args["ifs"]]
            if node.this is not None:
                for branch in node.args["ifs"]:
                    _compare(node, node.this, branch.this, types)
        case exp.Array() if len(node.expressions) == 1 and isinstance(
            node.expressions[0], exp.Query
        ):
            return
        case _:
            parts = list(node.iter_expressions())
    conversions.have_one_type(parts, node.key.upper(), types)


_CLAUSES: dict[type[exp.Expr], str] = {
    exp.Where: "WHERE",
    exp.Having: "HAVING",
    exp.Join: "JOIN/ON",
    exp.Case: "CASE/WHEN",
    exp.Is: "IS TRUE",
}


def _check_condition(node: exp.Expr, types: Types) -> None:
    """Raises SQLError 42804 for a condition that is no truth."""
    match node:
        case exp.And() | exp.Or():
            parts = [node.this, node.args["expression"]]
        case exp.Case():
            parts = [branch.this for branch in node.args["ifs"]] if node.this is None else []
        case exp.Join():
            parts = [node.args["on"]] if node.args.get("on") is not None else []
        case exp.Is():
            parts = [node.this] if isinstance(node.expression, exp.Boolean) else []
        case _:
            parts = [node.this]
    for part in parts:
        found = types.of(part)
        if found is not None and found.kind is not TypeKind.BOOL:
            what = _CLAUSES.get(type(node), node.key.upper())
            raise error_at(
                part,
                "42804",
                f"argument of {what} must be type boolean, not type {type_name(found)}",
            )
        conversions.as_type(part, BOOL, types)


def _check_array(node: exp.Bracket | exp.Any | exp.All, types: Types) -> None:
    found = types.of(node.this)
    if found is None or found.element is not None:
        return
    if isinstance(node, exp.Bracket):
        if found.kind is TypeKind.JSONB:
            return
        if isinstance(node.this, exp.Bracket):
            raise rows.several_dimensions(node)
        what = f"cannot subscript type {type_name(found)} because it does not support subscripting"
        raise SQLError("42804", what, position=position_of(node))
    if not isinstance(node.this.unnest(), exp.Query):
        raise error_at(node, "42809", "op ANY/ALL (array) requires array on right side")


def _check_cast(node: exp.Cast, types: Types) -> None:
    inner = node.this.unnest()
    if isinstance(inner, exp.Literal):
        node.set("this", inner)
    resolve_cast(node, types)


def _check_nullif(node: exp.Nullif, types: Types) -> None:
    """nullif() of numbers is of the type in which they are compared."""
    _compare(node, node.this, node.expression, types)
    first, second = types.of(node.this), types.of(node.expression)
    if first is None or second is None or {first.kind, second.kind}.isdisjoint(FLOATS):
        return
    if first.kind not in FLOATS:
        cast_in_place(node.this, FLOAT8)


def _check_anonymous(node: exp.Anonymous, types: Types) -> None:
    if rows.is_row(node):
        rows.check_row(node, types)
    else:
        _check_call(node, types)


def _check_substring(node: exp.Substring, types: Types) -> None:
    """Raises SQLError 0A000 for `substring(s FROM pattern)`."""
    start = node.args.get("start")
    if start is not None and (types.kind(start) is TypeKind.STRING or untyped(start)):
        hint = "split_part(), left() and substring() by places take a text apart."
        raise unsupported("substring() by a pattern", node, hint)
    _check_call(node, types)


Check = Callable[[Any, Types], None]
_CHECKS: dict[type[exp.Expr], tuple[Check, ...]] = {
    **dict.fromkeys(SIGNS, (_check_operator,)),
    **dict.fromkeys((*COMPARISONS, exp.In, exp.Between), (_check_comparison,)),
    **dict.fromkeys(
        (exp.And, exp.Or, exp.Not, exp.Where, exp.Having, exp.Join, exp.Is), (_check_condition,)
    ),
    exp.Case: (_check_condition, _alternatives),
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), (_alternatives,)),
    exp.Array: (rows.check_dimensions, _alternatives),
    exp.ArrayAgg: (rows.check_dimensions,),
    **dict.fromkeys(
        (exp.Union, exp.Except, exp.Intersect),
        (conversions.check_recursion, conversions.check_columns),
    ),
    exp.Values: (conversions.check_columns,),
    **dict.fromkeys((exp.GenerateSeries, exp.ExplodingGenerateSeries), (rows.check_series,)),
    **dict.fromkeys((exp.Explode, exp.Unnest), (rows.check_series, _check_call)),
    exp.Column: (rows.check_whole_row,),
    **dict.fromkeys((exp.Lag, exp.Lead), (_check_default,)),
    exp.Tuple: (rows.check_row,),
    exp.Anonymous: (_check_anonymous,),
    exp.Substring: (_check_substring,),
    **dict.fromkeys((exp.Bracket, exp.Any, exp.All), (_check_array,)),
    **dict.fromkeys((exp.Cast, exp.TryCast), (_check_cast,)),
    exp.Nullif: (_check_nullif,),
}
"""The checks of a node, by its class; every other node is checked to be a call that exists."""
