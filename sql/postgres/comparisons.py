"""Operators whose operands must be of one family, and rows that are compared with rows.

DuckDB casts what it compares: `true = 1` and `'10'::TEXT = 10` have answers there, and errors in
PostgreSQL. A text literal takes the type of the other side in both.
"""

from __future__ import annotations

from sqlglot import exp

from ...catalog.column_types import ColumnType
from ...catalog.errors import SQLError
from ...catalog.type_kinds import TypeKind
from ..parser import position_of
from .types import Types

_FAMILIES: dict[TypeKind, str] = {
    TypeKind.INT8: "number",
    TypeKind.DECIMAL: "number",
    TypeKind.FLOAT8: "number",
    TypeKind.STRING: "text",
    TypeKind.BOOL: "truth",
    TypeKind.DATE: "moment",
    TypeKind.TIMESTAMP: "moment",
    TypeKind.TIMESTAMPTZ: "moment",
    TypeKind.UUID: "uuid",
    TypeKind.BYTES: "bytes",
}
_NAMES = {
    TypeKind.INT8: "bigint",
    TypeKind.DECIMAL: "numeric",
    TypeKind.FLOAT8: "double precision",
    TypeKind.STRING: "text",
    TypeKind.BOOL: "boolean",
    TypeKind.DATE: "date",
    TypeKind.TIMESTAMP: "timestamp without time zone",
    TypeKind.TIMESTAMPTZ: "timestamp with time zone",
    TypeKind.BYTES: "bytea",
}
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def type_name(type: ColumnType) -> str:
    """What PostgreSQL calls a type in its messages."""
    return _NAMES.get(type.kind, type.kind.value.lower())


def check_comparison(tree: exp.Expr, types: Types) -> None:
    """Raises SQLError 42883 where no operator compares the two."""
    for place in operands(tree):
        _check(tree, tree.this, place, types)


def operands(tree: exp.Expr) -> list[exp.Expr]:
    """What `tree.this` is compared with."""
    match tree:
        case exp.In():
            return list(tree.expressions)
        case exp.Between():
            return [tree.args["low"], tree.args["high"]]
    return [tree.args["expression"]]


def _check(tree: exp.Expr, left: exp.Expr, right: exp.Expr, types: Types) -> None:
    first, second = types.of(left), types.of(right)
    if first is None or second is None or not types.strict:
        return
    if not same_family(first, second):
        raise no_operator(_SIGNS.get(type(tree), "="), first, second, tree)


def check_arithmetic(tree: exp.Expr, types: Types) -> None:
    """Raises SQLError 42883 for `true + 1` and `'a'::TEXT * 2`."""
    known = [types.of(tree.this), types.of(tree.args["expression"])]
    for type, other in (known, known[::-1]):
        if type is not None and other is not None and types.strict:
            bad = type.kind in (TypeKind.BOOL, TypeKind.STRING, TypeKind.UUID)
            if bad and other.kind not in (TypeKind.ARRAY, TypeKind.JSONB):
                assert known[0] is not None and known[1] is not None
                raise no_operator(_SIGNS[tree.__class__], known[0], known[1], tree)


def check_condition(tree: exp.Expr, types: Types) -> None:
    """Raises SQLError 42804 for an operand of AND, OR or NOT that is no BOOL."""
    parts = [tree.this] if isinstance(tree, exp.Not) else [tree.this, tree.args["expression"]]
    check_truths(parts, tree.key.upper(), types)


def check_truths(parts: list[exp.Expr], what: str, types: Types) -> None:
    for part in parts:
        type = types.of(part)
        if type is not None and type.kind is not TypeKind.BOOL and types.strict:
            raise SQLError(
                "42804",
                f"argument of {what} must be type boolean, not type {type_name(type)}",
                position=position_of(part),
            )


def same_family(left: ColumnType, right: ColumnType) -> bool:
    """Whether values of the two can be compared, as far as that is known."""
    if left.enum is not None and right.enum is not None:
        return left.enum.id == right.enum.id
    if left.enum is not None or right.enum is not None:
        return TypeKind.STRING not in (left.kind, right.kind) and left.kind is right.kind
    families = _FAMILIES.get(left.kind), _FAMILIES.get(right.kind)
    return None in families or families[0] == families[1]


def no_cast(tree: exp.Cast, types: Types) -> SQLError:
    source, target = types.of(tree.this), types.of(tree)
    assert source is not None and target is not None, tree
    return SQLError(
        "42846",
        f"cannot cast type {type_name(source)} to {type_name(target)}",
        position=position_of(tree),
    )


def check_concatenation(tree: exp.DPipe, types: Types) -> None:
    """Raises SQLError 42883 where neither side of `||` is text."""
    left, right = types.of(tree.this), types.of(tree.expression)
    if left is None or right is None or not types.strict:
        return
    if {left.kind, right.kind} <= set(_FAMILIES) - {TypeKind.STRING, TypeKind.BYTES}:
        raise no_operator("||", left, right, tree)


def no_operator(sign: str, left: ColumnType, right: ColumnType, tree: exp.Expr) -> SQLError:
    return SQLError(
        "42883",
        f"operator does not exist: {type_name(left)} {sign} {type_name(right)}",
        position=position_of(tree),
        hint="You might need to add explicit type casts.",
    )


def compared_rows(tree: exp.Expr) -> exp.Expr | None:
    """`(a, b) < (1, 2)` in terms of its parts: NULL where the parts leave it open."""
    if isinstance(tree, exp.In):
        return _in_rows(tree)
    left, right = _parts(tree.this), _parts(tree.args["expression"])
    if left is None or right is None:
        return None
    if len(left) != len(right):
        raise SQLError(
            "42601", "unequal number of entries in row expressions", position=position_of(tree)
        )
    match tree:
        case exp.EQ():
            return exp.paren(exp.and_(*_pairs(exp.EQ, left, right)), copy=False)
        case exp.NEQ():
            return exp.paren(exp.or_(*_pairs(exp.NEQ, left, right)), copy=False)
    strict = exp.LT if isinstance(tree, exp.LT | exp.LTE) else exp.GT
    made: exp.Expr = type(tree)(this=left[-1].copy(), expression=right[-1].copy())
    for first, second in list(zip(left, right, strict=True))[-2::-1]:
        same = exp.EQ(this=first.copy(), expression=second.copy())
        apart = strict(this=first.copy(), expression=second.copy())
        made = exp.or_(apart, exp.and_(same, made))
    return exp.paren(made, copy=False)


def _in_rows(tree: exp.In) -> exp.Expr | None:
    left = _parts(tree.this)
    if left is None or not tree.expressions:
        return None
    rows = [_parts(item) for item in tree.expressions]
    if any(row is None or len(row) != len(left) for row in rows):
        raise SQLError(
            "42601", "unequal number of entries in row expressions", position=position_of(tree)
        )
    tests = [exp.and_(*_pairs(exp.EQ, left, row)) for row in rows if row is not None]
    return exp.paren(exp.or_(*tests), copy=False)


def _pairs(
    operator: type[exp.EQ | exp.NEQ], left: list[exp.Expr], right: list[exp.Expr]
) -> list[exp.Expr]:
    return [
        operator(this=first.copy(), expression=second.copy())
        for first, second in zip(left, right, strict=True)
    ]


def _parts(tree: exp.Expr) -> list[exp.Expr] | None:
    """The entries of `(a, b)` or `ROW(a, b)`."""
    inner = tree.unnest()
    if isinstance(inner, exp.Tuple):
        return list(inner.expressions)
    if isinstance(inner, exp.Anonymous) and inner.name.upper() == "ROW":
        return list(inner.expressions)
    return None
