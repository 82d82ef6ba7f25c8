"""Conversions: casts that are written, and one type for what must have one.

Casts of text literals are read while planning: `'12.5'::INT8` is an error, `'on'::BOOL` is true.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ....catalog.values.column_types import (
    DECIMAL,
    FLOAT4,
    FLOAT8,
    JSONB,
    STRING,
    ColumnType,
    coerce,
)
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ....kvlayer.process.fibre import give_way
from ...builtins.macros import cast_in_place, cast_to
from ...builtins.signatures import NUMBERS, type_name
from ...syntax.statement import at
from ...syntax.trees import INNER, error_at, find_all, folded, paced, position_of, stepping, wrap
from ..scalars import Scalar, adapt, broad_type_of_cast, compile_scalar, type_of_cast
from .derived_types import decimal, literal_type, matched, widest
from .types import Types, untyped

_READ = frozenset(
    {TypeKind.BOOL, TypeKind.INT2, TypeKind.INT4, TypeKind.INT8, TypeKind.FLOAT4, TypeKind.FLOAT8,
     TypeKind.DECIMAL, TypeKind.BYTES, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ,
     TypeKind.UUID}
)  # fmt: skip


def literal_cast(cast: exp.Cast) -> tuple[Scalar, ColumnType] | None:
    """The constant that a cast of a text literal is, and its broad type; None for other casts."""
    literal = cast.this.unnest()
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return None
    type = type_of_cast(cast)
    if type is not None and type.enum is not None and not isinstance(cast, exp.TryCast):
        with at(position_of(literal)):
            type.enum.checked(literal.name)
    if type is None or type.kind not in _READ or isinstance(cast, exp.TryCast):
        return None
    if type.kind is TypeKind.DECIMAL and not cast.to.expressions:
        type = digits_of(literal.this, type)
        return adapt(compile_scalar(literal, {}), type, position=position_of(literal)), type
    with at(position_of(literal)):
        return compile_scalar(exp.Cast(this=literal.copy(), to=cast.to.copy()), {}), type.broad


_DIGITS_MAX = 30
"""Behind the point: eight are left before it."""


def digits_of(text: str, type: ColumnType) -> ColumnType:
    """DECIMAL with the digits of the text, or `type` where that holds it. Raises SQLError 22003
    for one that has more digits than any."""
    try:
        written = literal_type(text.strip().lstrip("+-"))
    except ValueError:
        written = None
    digits = written.decimal[1] if written is not None and written.kind is TypeKind.DECIMAL else 0
    if written is not None and digits <= _DIGITS_MAX:
        return ColumnType(TypeKind.DECIMAL, 38, digits)
    coerce(DECIMAL, text)
    return type


_NUMBERS = frozenset(NUMBERS)


_MOMENTS = frozenset({TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ})


CASTS: dict[TypeKind, frozenset[TypeKind]] = {
    TypeKind.INT8: _NUMBERS | {TypeKind.BOOL},
    TypeKind.DECIMAL: _NUMBERS,
    TypeKind.FLOAT4: _NUMBERS,
    TypeKind.FLOAT8: _NUMBERS,
    TypeKind.BOOL: frozenset({TypeKind.BOOL, TypeKind.INT8}),
    TypeKind.BYTES: frozenset({TypeKind.BYTES}),
    TypeKind.DATE: _MOMENTS - {TypeKind.TIME},
    TypeKind.TIME: frozenset({TypeKind.TIME}),
    TypeKind.TIMESTAMP: _MOMENTS,
    TypeKind.TIMESTAMPTZ: _MOMENTS,
    TypeKind.INTERVAL: frozenset({TypeKind.INTERVAL}),
    TypeKind.UUID: frozenset({TypeKind.UUID}),
    TypeKind.JSONB: frozenset({TypeKind.JSONB}),
}
"""The kinds that each kind is cast to; every kind is also cast to and from text."""


def resolve_cast(node: exp.Cast, types: Types) -> None:
    """Raises SQLError 42846 for a cast that there is not. What is cut to a width is text first."""
    source, target = types.of(node.this), broad_type_of_cast(node)
    if source is None or target is None or isinstance(node, exp.TryCast):
        return
    if not _castable(source, target):
        raise error_at(
            node,
            "42846",
            f"cannot cast type {type_name(source)} to {type_name(target)}",
            "(doc ->> 'a')::INT8 casts the text of a member." if source == JSONB else None,
        )
    narrow = type_of_cast(node)
    if narrow is not None and narrow.width is not None and source != STRING:
        cast_in_place(node.this, STRING)


def _castable(source: ColumnType, target: ColumnType) -> bool:
    if TypeKind.STRING in (source.kind, target.kind):
        return True
    if source.element is not None or target.element is not None:
        both = source.element is not None and target.element is not None
        return both and _castable(source.element or source, target.element or target)
    if source.enum is not None or target.enum is not None:
        return source == target
    return target.kind in CASTS[source.kind]


# One type for what must have one: branches of CASE, columns of UNION, rows of VALUES.
#
# coalesce(price, '0')         '0' is a DECIMAL, of as many digits as price
# SELECT 1 UNION SELECT 'x'    'x' is an INT8, which is 22P02
# CASE … THEN 1 ELSE now()     42804: they have none in common
#
# Columns of WITH RECURSIVE are of the types and the digits that their first rows have:
#
# SELECT 1 UNION ALL SELECT n * 1.5 FROM t            42804: DuckDB would round each row


def check_columns(node: exp.SetOperation | exp.Values, types: Types) -> None:
    """The columns of all sides of UNION, and of the rows of VALUES."""
    if node.meta.get(INNER):
        return  # the whole of its chain is looked at
    what = "VALUES" if isinstance(node, exp.Values) else node.key.upper()
    _, columns = types.parts_of(node)
    for column in columns:
        have_one_type(column, what, types)


def have_one_type(parts: Sequence[exp.Expr], what: str, types: Types) -> None:
    """Casts the parts to their common type, in place. Raises SQLError 42804 where there is none,
    with `what` in its message."""
    known = [(part, type) for part in paced(parts) if (type := types.of(part)) is not None]
    if not known:
        return
    first = known[0][1]
    for part, type in known[1:] if types.strict else ():
        give_way()
        if not matched(first, type):
            names = f"{type_name(first)} and {type_name(type)}"
            raise error_at(part, "42804", f"{what} types {names} cannot be matched")
    common = widest([type for _, type in known])
    made = [as_type(part, common, types) for part in paced(parts)]
    if common.kind is TypeKind.DECIMAL:
        have_one_scale(made, types)


def have_one_scale(parts: Sequence[exp.Expr], types: Types) -> None:
    """Decimals of as many digits as any of them has: DuckDB would drop some of 38."""
    scales = {
        type.decimal[1] if type.kind is TypeKind.DECIMAL else 0
        for part in parts
        if (type := types.of(part)) is not None
    }
    if len(scales) < 2:
        return
    common = decimal(max(scales))
    for part in parts:
        if types.of(part) not in (None, common) and not isinstance(part, exp.Literal):
            _cast_part(part, common)


def _cast_part(part: exp.Expr, type: ColumnType) -> None:
    """Casts one of several alternatives; a column of a query keeps its name."""
    name = part.output_name if isinstance(part.parent, exp.Select) else ""

    def made(inner: exp.Expr) -> exp.Expr:
        cast = cast_to(inner, type)
        return exp.alias_(cast, name, quoted=True, copy=False) if name else cast

    wrap(part, made)


def as_type(tree: exp.Expr, type: ColumnType | None, types: Types) -> exp.Expr:
    """Casts a text literal to the wanted type, in place. Returns the node that replaces it."""
    if type is None or type.kind is TypeKind.STRING or not untyped(tree):
        return tree
    inner = tree.unnest()
    if isinstance(inner, exp.Null):
        return tree
    assert isinstance(inner, exp.Literal), inner
    if type.enum is not None:
        type.enum.checked(inner.this)
    if type.kind is TypeKind.DECIMAL:
        type = digits_of(inner.this, type)
    made = cast_to(inner.copy(), type)
    inner.replace(made)
    if inner is tree:
        return made
    types.say(tree, type)
    return tree


def check_recursion(node: exp.SetOperation, types: Types) -> None:
    """Raises SQLError 42804 where the recursive side is of another type, or has more digits."""
    name = _recursive_name(node)
    if name is None:
        return
    _, first = types.parts_of(node.this)
    _, further = types.parts_of(node.args["expression"])
    for place, (seeds, others) in enumerate(zip(first, further, strict=False), 1):
        seed, whole = types.common(seeds), types.common([*seeds, *others])
        if seed is None or types.common(others) is None or whole is None:
            continue
        if seed.kind is not whole.kind or (whole.kind is TypeKind.DECIMAL and seed != whole):
            raise SQLError(
                "42804",
                f'recursive query "{name}" column {place} has type {type_name(seed)} '
                f"in non-recursive term but type {type_name(whole)} overall",
                position=position_of(seeds[0]),
                hint="Cast the output of the non-recursive term to the correct type.",
            )


def _recursive_name(node: exp.SetOperation) -> str | None:
    """Returns the name of the common table expression whose UNION reads its own rows."""
    table = node.parent
    if not isinstance(table, exp.CTE) or not isinstance(table.parent, exp.With):
        return None
    if not table.parent.args.get("recursive"):
        return None
    name = folded(table.args["alias"].this)
    named = find_all(node.args["expression"], exp.Table)
    return name if any(folded(found.this) == name for found in named if found.name) else None


def compare_in_double(left: exp.Expr, right: exp.Expr, types: Types) -> bool:
    """A number that meets a FLOAT4 is compared with it as a FLOAT8. Returns whether it does."""
    kinds = {types.kind(left), types.kind(right)}
    if len(kinds) != 2 or TypeKind.FLOAT4 not in kinds or not kinds <= set(NUMBERS):
        return False
    # One of them as a double is enough: what a query or an array has cannot be cast in its place.
    first = [left, right] if types.of(right) == FLOAT4 else [right, left]
    for side in first:
        if not isinstance(side, exp.Any | exp.All) and not isinstance(side.unnest(), exp.Query):
            cast_in_place(side, FLOAT8)
            break
    return True


def widened(operand: exp.Expr, types: Types) -> None:
    """Casts a number to FLOAT8: DuckDB would make a FLOAT of one beside a FLOAT."""
    kind = types.kind(operand)
    if kind in NUMBERS and kind is not TypeKind.FLOAT8:
        cast_in_place(operand, FLOAT8)


def listed_as_singles(node: exp.In, types: Types) -> None:
    """`f4 IN (0.1, 0.2)`: several constants are an array of the type that all have in common."""
    constants = [item for item in stepping(node.expressions) if item.find(exp.Column) is None]
    if len(constants) < 2:
        return
    if types.common([node.this, *constants]) == FLOAT4:
        for item in constants:
            if types.kind(item) in (TypeKind.INT8, TypeKind.DECIMAL):
                cast_in_place(item, FLOAT4)


def is_sum(node: exp.Expr, types: Types) -> bool:
    """Whether the node is a sum() of FLOAT4, with whatever FILTER and OVER it has: a FLOAT4.

    DuckDB adds doubles, which are rounded once: PostgreSQL's sum of singles depends on their order.
    """
    if isinstance(node.parent, exp.Filter | exp.Window) and node.arg_key == "this":
        return False
    while isinstance(node, exp.Filter | exp.Window):
        node = node.this
    return isinstance(node, exp.Sum) and types.of(node) == FLOAT4
