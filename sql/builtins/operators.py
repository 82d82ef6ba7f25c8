"""The operators whose operands and results are known, beside those on numbers alone."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from ...catalog.values.column_types import ColumnType
from ...catalog.values.type_kinds import TypeKind
from .signatures import Ambiguous, Argument, Chosen, Given, Signature, resolve, signatures

OPERATORS: dict[str, tuple[Signature, ...]] = signatures(
    """
    + - * / %(int8, int8) int8
    + - * / %(numeric, numeric) numeric
    + - * /(float4, float4) float4
    + - * /(float4, float8) float8
    + - * /(float8, float4|float8) float8
    + -(date, int8) date
    +(int8, date) date
    -(date, date) int8
    + -(date, interval) timestamp
    +(interval, date) timestamp
    +(date, time) timestamp
    +(time, date) timestamp
    + -(time, interval) time
    +(interval, time) time
    -(time, time) interval
    + -(timestamp, interval) timestamp
    +(interval, timestamp) timestamp
    -(timestamp, timestamp) interval
    + -(timestamptz, interval) timestamptz
    +(interval, timestamptz) timestamptz
    -(timestamptz, timestamptz) interval
    + -(interval, interval) interval
    * /(interval, float8) interval
    *(float8, interval) interval
    -(jsonb, text|int8|text[]) jsonb
    ||(text, text) text
    ||(bytea, bytea) bytea
    ||(jsonb, jsonb) jsonb
    ||(array, array) array
    ||(array, element) array
    ||(element, array) array
    ||(text, plain) text
    ||(plain, text) text
    ~~ ~~* ~ ~*(text, text) bool
    ~~(bytea, bytea) bool
    @> <@ &&(array, array) bool
    @> <@(jsonb, jsonb) bool
    """
)

SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||",
    exp.Like: "~~", exp.ILike: "~~*", exp.RegexpLike: "~", exp.RegexpILike: "~*",
    exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@", exp.ArrayOverlaps: "&&",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "=", exp.NullSafeNEQ: "=", exp.In: "=", exp.Between: ">=",
}  # fmt: skip
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_KEPT_MAX = 4096
"""Signs with types of operands whose meaning is kept."""
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


@lru_cache(_KEPT_MAX)
def operation(sign: str, left: Argument, right: Argument) -> Chosen | None:
    """Returns the signature of an operator by the types of its operands; None where none fits.
    Raises Ambiguous.

    A literal beside a type is of that type, if there is an operator for two of it.
    """
    candidates = OPERATORS[sign]
    other = right if left is Given.LITERAL else left
    if Given.LITERAL in (left, right) and isinstance(other, ColumnType):
        try:
            same = resolve(candidates, [other, other])
        except Ambiguous:
            same = None
        kinds = [None if wanted is None else wanted.kind for wanted in same.wanted] if same else []
        if kinds == [other.kind, other.kind]:
            return same
    return resolve(candidates, [left, right])


_FAMILIES: dict[TypeKind, str] = {
    TypeKind.INT8: "number",
    TypeKind.DECIMAL: "number",
    TypeKind.FLOAT4: "number",
    TypeKind.FLOAT8: "number",
    TypeKind.DATE: "moment",
    TypeKind.TIMESTAMP: "moment",
    TypeKind.TIMESTAMPTZ: "moment",
}


def comparable(left: Argument, right: Argument) -> bool:
    """Whether values of the two can be compared, as far as that is known."""
    if isinstance(left, Given) or isinstance(right, Given):
        return True
    if left.element is not None and right.element is not None:
        # No element is converted for the sake of another array's.
        return left.element.kind is right.element.kind and left.element.enum == right.element.enum
    if left.enum is not None and right.enum is not None:
        return left.enum.id == right.enum.id
    families = [_FAMILIES.get(kind, kind.value) for kind in (left.kind, right.kind)]
    return families[0] == families[1]
