"""Each operator, function and cast with operands of each type: a part of them, chosen by a seed.

All of them are some forty thousand statements, of which errors are most: the point is that both
servers say one, and that neither answers where the other answers otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

COUNT = 1_100
"""How many of them one run compares."""

_COLUMNS = (
    "i", "n", "f", "s", "v", "b", "y", "d", "t", "ts", "tz", "iv", "u", "ai", "at",
    "f4", "c", "af",
)  # fmt: skip
"""The columns of the table `z` (statements/matrix.sql), one of each type."""
_LITERALS = (
    "'1'", "'x'", "''", "'2024-01-01'", "'1 day'", "'{1}'", "NULL", "'t'", "'12:00'", "1", "-1",
    "1.5", "0",
)  # fmt: skip
_UNARY = [
    "abs",
    "ceil",
    "floor",
    "round",
    "trunc",
    "sign",
    "sqrt",
    "exp",
    "ln",
    "length",
    "char_length",
    "octet_length",
    "upper",
    "lower",
    "initcap",
    "reverse",
    "btrim",
    "ltrim",
    "rtrim",
    "ascii",
    "md5",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "age",
    "cardinality",
    "concat",
    "degrees",
    "sin",
]
_OF_MANY = ("trunc", "age")
"""PostgreSQL has them for types that are not here, so a literal leaves them open."""
_BINARY = [
    "mod",
    "power",
    "lpad",
    "rpad",
    "left",
    "right",
    "repeat",
    "strpos",
    "starts_with",
    "concat",
    "concat_ws",
    "array_append",
    "array_prepend",
    "array_cat",
    "array_remove",
    "array_position",
    "array_length",
    "array_to_string",
    "age",
    "date_trunc",
    "substr",
    "atan2",
    "nullif",
]
_OPERATORS = (
    "+", "-", "*", "/", "%", "||", "=", "<", ">=", "<>", "LIKE", "ILIKE", "~", "@>", "&&",
    "IS DISTINCT FROM",
)  # fmt: skip
_TYPES = (
    "INT8", "NUMERIC", "NUMERIC(10,1)", "FLOAT4", "FLOAT8", "TEXT", "VARCHAR(2)", "CHAR(3)",
    "BOOL", "BYTEA", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "UUID", "INT8[]",
    "TEXT[]", "FLOAT8[]",
)  # fmt: skip
_AGGREGATES = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "every",
    "array_agg",
    "var_pop",
]
_OF_ONE = (
    "SELECT -{c} {all}", "SELECT {c} IS TRUE {all}", "SELECT NOT {c} {all}",
    "SELECT {c}[1] {all}", "SELECT id, {c} FROM z ORDER BY {c}, id",
    "SELECT id FROM z ORDER BY {c} DESC, id", "SELECT id FROM z ORDER BY {c} NULLS FIRST, id",
    "SELECT DISTINCT {c} FROM z ORDER BY {c}",
    "SELECT {c}, count(*) FROM z GROUP BY {c} ORDER BY {c}",
    "SELECT a.id FROM z a JOIN z o USING ({c}) ORDER BY 1", "SELECT count(DISTINCT {c}) FROM z",
    "SELECT id, lag({c}) OVER (ORDER BY id), rank() OVER (ORDER BY {c}) {all}",
    "SELECT max({c}) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) {all}",
    "SELECT {c} FROM z EXCEPT SELECT {c} FROM z WHERE id < 3 ORDER BY 1",
    "SELECT {c} FROM z INTERSECT SELECT {c} FROM z WHERE id < 3 ORDER BY 1",
    "SELECT id FROM z WHERE {c} IN (SELECT {c} FROM z WHERE id < 3) ORDER BY id",
    "SELECT id FROM z WHERE {c} NOT IN (SELECT {c} FROM z WHERE id = 1) ORDER BY id",
    "SELECT id, q.x FROM z, LATERAL (SELECT z.{c} AS x) q ORDER BY id",
    "WITH w AS (SELECT {c} AS x, id FROM z) SELECT x, id FROM w ORDER BY id",
    "SELECT {c}::TEXT || '!' {all}", "SELECT {c} || '!' {all}",
    "SELECT concat({c}, '-', {c}), format('%s', {c}) {all}",
    "SELECT greatest({c}, NULL, {c}), least({c}), coalesce({c}, NULL) {all}",
    "SELECT CASE WHEN id > 2 THEN {c} END {all}", "SELECT array_agg({c} ORDER BY id) FROM z",
    "SELECT string_agg({c}::TEXT, ',' ORDER BY id) FROM z",
    "SELECT b, {c}, count(*) FROM z GROUP BY ROLLUP (b, {c}) ORDER BY 1, 2, 3",
    "SELECT b, {c}, count(*) FROM z GROUP BY GROUPING SETS ((b), ({c})) ORDER BY 1, 2, 3",
)  # fmt: skip
_OF_TWO = (
    "SELECT coalesce({a}, {c}) {all}", "SELECT CASE WHEN id = 1 THEN {a} ELSE {c} END {all}",
    "SELECT {a} FROM z WHERE id < 3 UNION ALL SELECT {c} FROM z WHERE id < 3",
    "SELECT greatest({a}, {c}) FROM z WHERE id < 3 ORDER BY id",
    "SELECT {a} IN ({c}, {a}) FROM z WHERE id < 3 ORDER BY id",
    "SELECT {a} BETWEEN {c} AND {c} FROM z WHERE id < 3 ORDER BY id",
    "SELECT ARRAY[{a}, {c}] FROM z WHERE id = 1",
    "SELECT a.id FROM z a JOIN z o ON a.{a} = o.{c} ORDER BY 1",
    "SELECT {a} = ANY (ARRAY[{c}]) FROM z WHERE id = 1",
    "SELECT ({a}, id) = ({c}, id) FROM z WHERE id < 3 ORDER BY id",
    "SELECT {a} = (SELECT {c} FROM z WHERE id = 1) FROM z WHERE id = 1",
)  # fmt: skip
_WITH_LITERAL = (
    "SELECT coalesce({a}, {c}) {all}", "SELECT CASE WHEN id = 1 THEN {c} ELSE {a} END {all}",
    "SELECT {a} FROM z UNION SELECT {c} ORDER BY 1",
    "SELECT {a} IN ({c}) FROM z WHERE id < 3 ORDER BY id", "SELECT least({c}, {a}) {all}",
    "SELECT {a} BETWEEN {c} AND {c} FROM z WHERE id < 3 ORDER BY id",
)  # fmt: skip
_ALL = "FROM z ORDER BY id"
_SOME = "FROM z WHERE id IN (1, 2, 4) ORDER BY id"


def matrix_statements(seed: int) -> tuple[str, ...]:
    """A part of the matrix, the same for a seed in any process."""
    return tuple(Random(seed).sample(sorted(set(_whole())), COUNT))


def _whole() -> Iterator[str]:
    yield from _of_one()
    for left in _COLUMNS:
        for right in _COLUMNS:
            yield from _pairs(left, right, _OF_TWO)
        for literal in _LITERALS:
            yield from _pairs(left, literal, _WITH_LITERAL)
            yield from (
                f"SELECT {literal} {sign} {left} FROM z WHERE id = 1" for sign in _OPERATORS
            )


def _of_one() -> Iterator[str]:
    for column in _COLUMNS:
        yield from (each.format(c=column, all=_ALL) for each in _OF_ONE)
        yield from (f"SELECT id, {name}({column}) {_ALL}" for name in _UNARY)
        yield from (f"SELECT id, {column}::{type} {_ALL}" for type in _TYPES)
        for name in _AGGREGATES:
            yield f"SELECT {name}({column}), {name}(DISTINCT {column}) FROM z WHERE id < 5"
            yield f"SELECT b, {name}({column}) FILTER (WHERE id < 4) FROM z GROUP BY b ORDER BY b"
            yield f"SELECT {name}({column}) FROM z WHERE false"
    for literal in _LITERALS:
        yield from (f"SELECT {name}({literal})" for name in _UNARY if name not in _OF_MANY)
        yield from (f"SELECT ({literal})::{type}" for type in _TYPES)


def _pairs(left: str, right: str, forms: tuple[str, ...]) -> Iterator[str]:
    yield from (form.format(a=left, c=right, all=_ALL) for form in forms)
    yield from (f"SELECT id, {left} {sign} {right} {_SOME}" for sign in _OPERATORS)
    yield from (f"SELECT id, {name}({left}, {right}) {_SOME}" for name in _BINARY)
