"""Statements that may be of any size: sixteen shapes, each of as many parts as are asked for.

Tables: `shape (id INT8 PRIMARY KEY, n INT8, note TEXT)`.
"""

from __future__ import annotations

from collections.abc import Callable

TABLE = "CREATE TABLE shape (id INT8 PRIMARY KEY, n INT8, note TEXT)"


def _nested(left: str, inner: str, right: str, size: int) -> str:
    return left * size + inner + right * size


def _casts(size: int) -> str:
    return f"SELECT 1{'::INT8::TEXT' * (size // 2)} AS c"


def _joins(size: int) -> str:
    joined = " ".join(f"JOIN shape s{n} ON s{n}.id = s0.id" for n in range(1, size))
    return f"SELECT s0.n FROM shape s0 {joined}"


def _subqueries(size: int) -> str:
    items = " + ".join(f"(SELECT max(n) FROM shape WHERE id = {n})" for n in range(size))
    return f"SELECT {items} AS c"


SHAPES: dict[str, Callable[[int], str]] = {
    "in": lambda n: f"SELECT 1 AS c WHERE 1 IN ({', '.join(map(str, range(n)))})",
    "parameters": lambda n: (
        f"SELECT n FROM shape WHERE n IN ({', '.join(f'${k + 1}' for k in range(n))})"
    ),
    "values": lambda n: f"VALUES {', '.join(f'({k}, {k})' for k in range(n))}",
    "union_all": lambda n: " UNION ALL ".join(f"SELECT {k} AS c" for k in range(n)),
    "and_or": lambda n: (
        "SELECT 1 AS c WHERE " + " OR ".join(f"{k} = 1 AND {k} = 2" for k in range(n))
    ),
    "plus": lambda n: f"SELECT {' + '.join('1' * n)} AS c",
    "concat": lambda n: f"SELECT {' || '.join(['note'] * n)} AS c FROM shape",
    "case": lambda n: (
        "SELECT CASE "
        + " ".join(f"WHEN n = {k} THEN {k}" for k in range(n))
        + " ELSE 0 END AS c FROM shape"
    ),
    "not": lambda n: f"SELECT {'NOT ' * n}true AS c",
    "parentheses": lambda n: f"SELECT {_nested('(', '1', ')', n)} AS c",
    "casts": _casts,
    "array": lambda n: f"SELECT ARRAY[{', '.join(f'{k} + 1' for k in range(n))}] AS c",
    "calls": lambda n: f"SELECT {_nested('abs(', '1', ')', n)} AS c",
    "subqueries": _subqueries,
    "joins": _joins,
    "columns": lambda n: f"SELECT {', '.join(f'n + {k} AS c{k}' for k in range(n))} FROM shape",
}
"""What each statement is, by how many parts it has."""

LEAST = {
    "in": 100, "parameters": 125, "values": 100, "plus": 12, "concat": 12, "casts": 12,
    "subqueries": 12, "joins": 16, "not": 6, "parentheses": 6, "calls": 6,
}  # fmt: skip
LEAST_OF_OTHERS = 25
DOUBLINGS = 5


def sizes(name: str) -> list[int]:
    """The sizes in which a shape is measured: the largest are near the limits on statements."""
    least = LEAST.get(name, LEAST_OF_OTHERS)
    return [least << doubling for doubling in range(DOUBLINGS + 1)]
