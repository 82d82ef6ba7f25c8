"""One type for what must have one: branches of CASE, columns of UNION, rows of VALUES.

coalesce(price, '0')         '0' is a DECIMAL, of as many digits as price
SELECT 1 UNION SELECT 'x'    'x' is an INT8, which is 22P02
CASE … THEN 1 ELSE now()     42804: they have none in common

Columns of WITH RECURSIVE are of the types that their first rows have:

SELECT 1 UNION ALL SELECT n * 1.5 FROM t            42804: DuckDB would round each row
SELECT 1::NUMERIC UNION ALL SELECT n * 1.5 FROM t   of 16 fractional digits, not of none
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ....kvlayer.fibre import give_way
from ...builtins.templates import cast_to
from ...builtins.type_names import type_name
from ...parse import folded, position_of
from ...syntax.balanced import INNER
from ...syntax.tree_copies import wrap
from ...syntax.walks import find_all
from .blanks import agree_as_char
from .derived_types import FLOAT4, decimal, matched, of_recursion, widest
from .literal_casts import digits_of
from .sets import check_listed_series
from .types import STRING, Types, untyped


def check_columns(node: exp.SetOperation | exp.Values, types: Types) -> None:
    """The columns of both sides of UNION, and of the rows of VALUES."""
    if isinstance(node, exp.Values):
        check_listed_series(node)
        _, columns = types.parts_of(node)
        for column in columns:
            have_one_type(column, "VALUES", types)
        return
    if node.meta.get(INNER):
        return  # the whole of its chain is looked at
    sides = [types.parts_of(side)[1] for side in _sides(node)]
    if len({len(side) for side in sides}) == 1:
        for parts in zip(*sides, strict=True):
            _have_one_type_in_turn(parts, node.key.upper(), types)


def _sides(node: exp.Expr) -> list[exp.Expr]:
    """Returns the queries of a UNION or of a chain of them, from left to right."""
    found: list[exp.Expr] = []
    waiting = [node.args["expression"], node.this]
    while waiting:
        side = waiting.pop()
        if side.meta.get(INNER):
            waiting += [side.args["expression"], side.this]
        else:
            found.append(side)
    return found


def _have_one_type_in_turn(sides: Sequence[Sequence[exp.Expr]], what: str, types: Types) -> None:
    """One column of a UNION: each side meets what those before it have in common.

    What is nothing but literals on both sides of an inner UNION is a text there.
    """
    if len(sides) == 2:
        inner = [types.common(side) for side in sides if len(side) > 1]
        have_one_type([*sides[0], *sides[1]], what, types, of_inner=inner)
        return
    common = types.common(sides[0]) if len(sides[0]) > 1 else types.of(sides[0][0])
    seen: list[exp.Expr] = list(sides[0])
    made: list[exp.Expr] = []
    for side in sides[1:]:
        give_way()
        if common is None and len(seen) > 1:
            common = STRING
        found = [types.common(side)] if len(side) > 1 else [types.of(part) for part in side]
        for type in found:
            if type is None:
                continue
            if common is not None and types.strict and not matched(common, type):
                raise _unmatched(what, common, type, side[0])
            common = type if common is None else widest([common, type])
        seen += side
        if common is not None:
            made += [as_type(part, common, types) for part in seen[len(made) :]]
    if common is None:
        return
    if common.kind is TypeKind.STRING:
        agree_as_char(made, types)
    if common.kind is TypeKind.DECIMAL:
        have_one_scale(made, types)
    if common.kind is TypeKind.FLOAT4:
        as_singles(made, types)


def have_one_type(
    parts: Sequence[exp.Expr],
    what: str,
    types: Types,
    *,
    of_inner: Sequence[ColumnType | None] = (),
) -> None:
    """Casts the parts to their common type, in place; `of_inner` are types of parts that have no
    tree. Raises SQLError 42804 where there is none, with `what` in its message."""
    known = [(part, type) for part in parts if (type := types.of(part)) is not None]
    known = [(parts[0], type) for type in of_inner if type is not None] + known
    if not known:
        return
    if known[0][1].kind is TypeKind.STRING:
        agree_as_char(parts, types)
    first = known[0][1]
    for part, type in known[1:] if types.strict else ():
        if not matched(first, type):
            raise _unmatched(what, first, type, part)
    common = widest([type for _, type in known])
    made = [as_type(part, common, types) for part in parts]
    if common.kind is TypeKind.DECIMAL:
        have_one_scale(made, types)
    if common.kind is TypeKind.FLOAT4:
        as_singles(made, types)


def _unmatched(what: str, first: ColumnType, type: ColumnType, part: exp.Expr) -> SQLError:
    """PostgreSQL tells types of one category from those of several."""
    arrays = first.element is not None and type.element is not None
    alike = any({first.kind, type.kind} <= kinds for kinds in _ALIKE)
    if arrays or alike:
        return SQLError(
            "42846",
            f"{what} could not convert type {type_name(type)} to {type_name(first)}",
            position=position_of(part),
        )
    return SQLError(
        "42804",
        f"{what} types {type_name(first)} and {type_name(type)} cannot be matched",
        position=position_of(part),
    )


_ALIKE = (
    {TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ},
    {TypeKind.BYTES, TypeKind.UUID, TypeKind.JSONB},
)


def have_one_scale(parts: Sequence[exp.Expr], types: Types, *, least: int = 0) -> None:
    """Decimals of as many digits as any of them has: DuckDB would drop some of 38."""
    scales = {
        type.decimal[1] if type.kind is TypeKind.DECIMAL else 0
        for part in parts
        if (type := types.of(part)) is not None
    }
    if len(scales) < 2:
        return
    common = decimal(max(*scales, least))
    for part in parts:
        if types.of(part) not in (None, common) and (least or not isinstance(part, exp.Literal)):
            _cast_part(part, common)


def as_singles(parts: Sequence[exp.Expr], types: Types) -> None:
    """Alternatives that have FLOAT4 in common: numbers are cast to it."""
    for part in parts:
        if types.kind(part) in (TypeKind.INT8, TypeKind.DECIMAL):
            _cast_part(part, FLOAT4)


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
    """Raises SQLError 42804 where the recursive side is of another type, and gives decimals room
    for digits that the first rows do not have."""
    name = _recursive_name(node)
    if name is None:
        return
    _, first = types.parts_of(node.this)
    _, further = types.parts_of(node.args["expression"])
    for place, (seeds, others) in enumerate(zip(first, further, strict=False), 1):
        seed, whole = types.common(seeds), types.common([*seeds, *others])
        other = types.common(others)
        if seed is None or whole is None or other is None:
            continue
        if seed.kind is not whole.kind:
            raise SQLError(
                "42804",
                f'recursive query "{name}" column {place} has type {type_name(seed)} '
                f"in non-recursive term but type {type_name(whole)} overall",
                position=position_of(seeds[0]),
                hint="Cast the output of the non-recursive term to the correct type.",
            )
        made = of_recursion(seed, others)
        if made is not None and made != seed:
            have_one_scale([*seeds, *others], types, least=made.decimal[1])


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
